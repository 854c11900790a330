"""The environment of the terminal. Standard library only, because the prompt waits for it.

For the same reason this module may read the environment.
"""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple


class TerminalFacts(NamedTuple):
    """Known properties of the terminal before anything is drawn.

    `locale` has the form `zh_CN.UTF-8`; `language` is the value of `ui.language` in the
    environment.
    """

    term: str
    no_colour: bool
    true_colour: bool
    locale: str
    language: str
    reflows: bool = True
    """True if the terminal wraps its rows again when its window becomes narrower."""


_WITHOUT_REFLOW = ("linux", "screen", "rxvt", "eterm")


def terminal_facts(environ: Mapping[str, str] = os.environ) -> TerminalFacts:
    """Read the properties of the terminal and the language from the environment."""
    named = (environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return TerminalFacts(
        term=environ.get("TERM", ""),
        no_colour=bool(environ.get("NO_COLOR")),  # https://no-color.org: any non-empty value
        true_colour=environ.get("COLORTERM", "") in {"truecolor", "24bit"},
        locale=next((one for one in named if one), ""),
        language=environ.get("LARKSPUR_UI__LANGUAGE", ""),
        reflows=bool(environ.get("TMUX"))
        or not (
            environ.get("XTERM_VERSION") or environ.get("TERM", "").startswith(_WITHOUT_REFLOW)
        ),
    )


def is_automated(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True in continuous integration, where nobody answers."""
    return environ.get("CI", "") not in {"", "0", "false"}


def has_desktop(environ: Mapping[str, str] = os.environ) -> bool:
    """Return True if programs can open windows, or if `BROWSER` names one.

    Always true on systems without X11 and Wayland.
    """
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(map(environ.get, names))
