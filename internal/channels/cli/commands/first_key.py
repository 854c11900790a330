"""The question for a key at the first start of a session. Standard library only."""

import getpass
import warnings
from argparse import Namespace
from collections.abc import Sequence

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.output import print_error
from internal.config import home as home_folder
from internal.config.terminal_env import is_automated
from internal.i18n.catalog import MessageCatalog

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
        key = application.clean_key(_read_hidden(messages("first_key")))
        if not key:
            return
        if known := application.find_providers_of_key(key):
            provider = known[0] if len(known) == 1 else _chosen(known, messages)
            if provider is None:
                continue
            name, title = provider
            path = home_folder.write_stored_settings(
                home, {"llm": {"provider": name, "keys": {name: key}}}
            )
            print_error(messages("first_key_stored", provider=title, file=path))
            return
        print_error(messages("first_key_unknown"))


def _chosen(known: Sequence[tuple[str, str]], messages: MessageCatalog) -> tuple[str, str] | None:
    """Ask whose key it is; None without a clear answer."""
    titles = ", ".join(f"{number} {title}" for number, (_, title) in enumerate(known, 1))
    try:
        answer = input(messages("first_key_which", providers=titles)).strip().casefold()
    except EOFError:
        return None
    for number, (name, title) in enumerate(known, 1):
        if answer in {str(number), name, title.casefold()}:
            return name, title
    return None


def _read_hidden(question: str) -> str:
    """Return a line from the terminal without showing it; "" at its end.

    A terminal that cannot hide it is not asked.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(question).strip()
        except (EOFError, getpass.GetPassWarning):
            return ""
