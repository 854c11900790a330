"""The entry of a key on a terminal. Standard library only."""

import getpass
import warnings
from collections.abc import Sequence

from internal.i18n.catalog import MessageCatalog

_MAX_LINE = 10_000


def read_hidden(question: str) -> str:
    """Return a line from the terminal without showing it; "" at its end.

    A terminal that cannot hide it is not asked.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(question).strip()
        except (EOFError, getpass.GetPassWarning):
            return ""


def read_piped() -> str:
    """Return the first line of standard input, which is no terminal."""
    with open(0, encoding="utf-8", errors="replace", closefd=False) as file:
        return file.readline(_MAX_LINE)


def choose_provider(
    known: Sequence[tuple[str, str]], messages: MessageCatalog
) -> tuple[str, str] | None:
    """Return the only one of some providers, or ask whose key it is.

    `known` are names and titles. None without a clear answer.
    """
    if len(known) == 1:
        return known[0]
    titles = ", ".join(f"{number} {title}" for number, (_, title) in enumerate(known, 1))
    try:
        answer = input(messages("first_key_which", providers=titles)).strip().casefold()
    except EOFError:
        return None
    for number, (name, title) in enumerate(known, 1):
        if answer in {str(number), name, title.casefold()}:
            return name, title
    return None
