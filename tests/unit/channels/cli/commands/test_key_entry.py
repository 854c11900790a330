"""The entry of a key on a terminal; `tests/e2e/test_first_key.py` has the questions."""

from internal.channels.cli.commands.key_entry import choose_provider
from internal.i18n.catalog import MessageCatalog


def test_the_only_provider_is_not_asked_about() -> None:
    known = ("openai", "OpenAI")
    assert choose_provider([known], MessageCatalog("cli", "en")) == known
