"""The question for a key at the first start of a session. Standard library only."""

from argparse import Namespace

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.key_entry import choose_provider, read_hidden
from internal.channels.cli.output import print_error
from internal.config import home as home_folder
from internal.config.terminal_env import is_automated

_MAX_ATTEMPTS = 3
_CHOICES = ("llm.provider", "llm.model", "llm.api_key", "llm.base_url")


def offer_key(args: Namespace, context: CommandContext) -> None:
    """Ask for the key of a model once: in an unused home folder without settings and keys.

    The key is not shown and is stored in the home folder. Enter continues with the demo
    model; the home folder is in use then, so the question is not repeated. Needs a terminal.

    Raises:
        HomeError: the key cannot be stored.
    """
    home = home_folder.locate()
    if is_automated() or args.model or args.config or not home_folder.is_unused(home):
        return
    application = context.application()
    rows = {key: origin for key, _, origin in application.settings(args.config).rows}
    if any(rows[key] != "default" for key in _CHOICES):
        return
    messages = context.messages
    for _ in range(_MAX_ATTEMPTS):
        key = application.clean_key(read_hidden(messages("first_key")))
        if not key:
            return
        if known := application.find_providers_of_key(key):
            provider = choose_provider(known, messages)
            if provider is None:
                continue
            name, title = provider
            path = home_folder.write_stored_settings(
                home, {"llm": {"provider": name, "keys": {name: key}}}
            )
            print_error(messages("first_key_stored", provider=title, file=path))
            return
        print_error(messages("first_key_unknown"))
