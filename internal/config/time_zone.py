"""The local time zone: the zone of `ui.time_zone`, else the system's."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from internal.normal_forms.time_zones import check_time_zone

_LOCAL_TIME, _NAME_FILE, _FOLDER = Path("/etc/localtime"), Path("/etc/timezone"), "/zoneinfo/"


def enter_time_zone(name: str | None) -> None:
    """Set the time zone of this process; None keeps the system's."""
    if name is not None and os.environ.get("TZ") != name:
        os.environ["TZ"] = name
        time.tzset()


def find_time_zone(environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the zone of this process, "" if it has none."""
    if named := environ.get("TZ", ""):
        return _checked(named.removeprefix(":"))
    with suppress(OSError):
        _, folder, name = str(_LOCAL_TIME.resolve()).partition(_FOLDER)
        if folder and (known := _checked(name)):
            return known
    with suppress(OSError, UnicodeDecodeError):
        return _checked(_NAME_FILE.read_text(encoding="ascii").strip())
    return ""


def chosen_time_zone(environ: Mapping[str, str] = os.environ) -> str:
    """Return the name of the zone that was chosen for this process, "" for the system's."""
    return _checked(environ.get("TZ", "").removeprefix(":")) if environ.get("TZ") else ""


def _checked(name: str) -> str:
    try:
        return check_time_zone(name)
    except ValueError:  # such as CST-8, whose rules the system knows all the same
        return ""
