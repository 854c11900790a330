"""The terminal as the environment describes it. Standard library only: a prompt waits for it.

For the same reason as `home.py` it may look at the environment, as otherwise only `load.py` does.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple


class TerminalFacts(NamedTuple):
    """What is known of the terminal before anything is drawn.

    `locale` is such as `zh_CN.UTF-8`; `language` is what the environment sets for `ui.language`.
    """

    term: str
    no_colour: bool
    true_colour: bool
    locale: str
    language: str


def terminal_facts(environ: Mapping[str, str] = os.environ) -> TerminalFacts:
    """Read what is known of the terminal and its person's language."""
    named = (environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return TerminalFacts(
        term=environ.get("TERM", ""),
        no_colour=bool(environ.get("NO_COLOR")),  # https://no-color.org: any value but an empty one
        true_colour=environ.get("COLORTERM", "") in {"truecolor", "24bit"},
        locale=next((one for one in named if one), ""),
        language=environ.get("LARKSPUR_UI__LANGUAGE", ""),
    )
