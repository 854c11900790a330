"""The browser of the desktop."""

import contextlib
import html
import webbrowser
from pathlib import Path

from internal.config import home as home_folder
from internal.config.terminal_env import has_desktop

_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={url}"><title>Larkspur</title>'
    '<a href="{url}">Larkspur</a>\n'
)


def open_browser(url: str, home: Path) -> bool:
    """Show a page in the browser of the desktop. Return False if there is none.

    The address may contain a secret, and every user of the machine sees the arguments of a process:
    the browser gets a file of the home folder that leads to it.

    Browsers that would take over the terminal, such as w3m, are not used unless `BROWSER` names
    one. On a remote machine without a display, nothing is started.
    """
    if not has_desktop():
        return False
    file = home / "open.html"
    with contextlib.suppress(webbrowser.Error, home_folder.HomeError):
        home_folder.replace_private(file, _PAGE.format(url=html.escape(url)))
        return webbrowser.open(file.absolute().as_uri())
    return False
