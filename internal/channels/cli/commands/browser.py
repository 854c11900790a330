"""The browser of the desktop."""

import contextlib
import webbrowser

from internal.config.terminal_env import has_desktop


def open_browser(url: str) -> bool:
    """Show a page in the browser of the desktop. Return False if there is none.

    Browsers that would take over the terminal, such as w3m, are not used unless `BROWSER` names
    one. On a remote machine without a display, nothing is started.
    """
    if not has_desktop():
        return False
    with contextlib.suppress(webbrowser.Error):
        return webbrowser.open(url)
    return False
