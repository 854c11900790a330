"""The context of a command."""

from internal.channels.cli.commands.context import CommandContext
from internal.i18n.language import LANGUAGES
from larkspur.application import Application


def test_messages_are_in_the_language_of_the_environment(application: Application) -> None:
    context = CommandContext(lambda: application, "1.2.3")
    assert context.language in LANGUAGES
    assert context.messages.language == context.language
    assert context.messages("removed", what="x")
