"""`larkspur doctor`: looks at everything that a start needs, and changes nothing."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from internal.agent.domain.errors import StoreCorrupt, StoreUnavailable
from internal.channels.cli.exit_codes import CONFIG, OK
from internal.channels.cli.http_client import Door
from internal.channels.cli.output import sanitize_terminal
from internal.config import home as home_folder
from internal.config.home import HomeError
from internal.config.loader import Loaded, load
from internal.config.settings import Settings
from internal.config.types import ConfigError
from internal.storage.sqlite.file_check import check_file

State = Literal["ok", "warn", "fail"]
_LITTLE_SPACE = 500 * 1024 * 1024


class Check(NamedTuple):
    """What was looked at, how it is, and in `advice` what a person can do about it."""

    name: str
    state: State
    sentence: str
    advice: str = ""


def examine(config: str | None, *, as_json: bool) -> int:
    """Print every check; the exit code is 0, or 3 when one of them failed."""
    found = list(checks(config))
    if as_json:
        print(json.dumps([check._asdict() for check in found], indent=2, ensure_ascii=False))
    else:
        for check in found:
            print(sanitize_terminal(line_of(check)))
    return CONFIG if any(check.state == "fail" for check in found) else OK


def line_of(check: Check) -> str:
    """Return a check on one line."""
    advice = f" {check.advice}" * bool(check.advice)
    return f"{check.state:<4}  {check.name}: {check.sentence}{advice}"


def checks(config: str | None) -> Iterator[Check]:
    """Look at one thing after the other."""
    yield Check("python", "ok", f"Python {sys.version.split()[0]}.")
    try:
        home = home_folder.locate()
    except HomeError as error:
        yield Check("home", "fail", str(error))
        return
    yield _home(home)
    yield _token(home)
    yield _gateway(home)
    yield _space(home)
    yield _ripgrep()
    yield Check(
        "sandbox",
        "warn",
        "Tools are not isolated: what is allowed runs with your own rights.",
        "Allow only what you would run yourself.",
    )
    try:
        loaded = load(config=config)
    except (ConfigError, HomeError) as error:
        yield Check("settings", "fail", str(error))
        return
    yield _settings(loaded)
    yield _model(loaded.settings)
    yield _database(loaded.settings.database.path)


def _home(home: Path) -> Check:
    try:
        found = home.stat()
    except FileNotFoundError:
        return Check("home", "ok", f"{home} is not there yet; the first start makes it.")
    except OSError as error:
        return Check("home", "fail", f"{home} cannot be used: {error.strerror}.")
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return Check("home", "fail", f"{home} is not a folder of yours.", "Set LARKSPUR_HOME.")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        return Check("home", "fail", f"{home} cannot be written.", "Set LARKSPUR_HOME.")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check("home", "warn", f"{home} is open to other users.", f"chmod 700 {home}")
    return Check("home", "ok", f"{home} is yours alone.")


def _token(home: Path) -> Check:
    if not os.path.lexists(home / "token"):
        return Check("token", "ok", "There is none yet; the first `larkspur serve` makes it.")
    try:
        home_folder.read_token(home)
    except HomeError as error:
        return Check("token", "fail", str(error))
    return Check("token", "ok", "The local token is there and yours alone.")


def _gateway(home: Path) -> Check:
    try:
        address = home_folder.find_gateway(home)
    except HomeError as error:
        return Check("gateway", "fail", str(error))
    if address is None:
        return Check("gateway", "ok", "None runs here; one shots run in their own process.")
    if Door(address.url, "").answers():
        model = f"{address.provider}, {address.model}"
        return Check("gateway", "ok", f"One runs at {address.url} ({model}).")
    sentence = f"The process {address.pid} should answer at {address.url} and does not."
    return Check("gateway", "warn", sentence, "Look at its log, or start it anew.")


def _space(home: Path) -> Check:
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    sentence = f"{free / 2**30:.1f} GiB are free at {there}."
    if free < _LITTLE_SPACE:
        return Check("disk", "warn", sentence, "When the disk is full, nothing more is accepted.")
    return Check("disk", "ok", sentence)


def _ripgrep() -> Check:
    if found := shutil.which("rg"):
        return Check("ripgrep", "ok", f"{found} searches files.")
    advice = "Install ripgrep for large folders."
    return Check("ripgrep", "warn", "It is not there; files are searched more slowly.", advice)


def _settings(loaded: Loaded) -> Check:
    named = f"{loaded.file} and the environment" if loaded.file else "the environment alone"
    return Check("settings", "ok", f"Read from {named}; {len(loaded.origins)} keys are set.")


def _model(settings: Settings) -> Check:
    llm = settings.llm
    if llm.provider == "offline":
        advice = "Set ANTHROPIC_API_KEY for a real one."
        return Check("model", "warn", "The offline demo model does the work.", advice)
    try:
        llm.require_api_key()
    except ConfigError as error:
        return Check("model", "fail", str(error))
    return Check("model", "ok", f"{llm.model} of {llm.provider}; a key is set, it was not tried.")


def _database(path: Path) -> Check:
    if not path.exists():
        return Check("database", "ok", f"{path} does not exist yet; the first start creates it.")
    try:
        version = check_file(path).version
    except (StoreCorrupt, StoreUnavailable) as error:
        return Check("database", "fail", str(error))
    return Check("database", "ok", f"{path} can be opened (schema version {version}).")
