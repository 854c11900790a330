"""`larkspur doctor`: check the installation without changing it."""

import contextlib
import json
import os
import shutil
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from internal.channels.cli.application import Application, Check, SettingsSummary
from internal.channels.cli.command_output import CommandOutput
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.commands.parser import add_config, add_json
from internal.channels.cli.exit_codes import CONFIG, OK
from internal.channels.cli.output import Output
from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import Unreachable
from internal.config import home as home_folder
from internal.config.home import HomeError
from internal.settings.types import ConfigError

_PACKAGES = "packages"  # a check of `check_sandbox` that is not about a way out
_MIN_FREE_BYTES = 500 * 1024 * 1024


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        description="Check the installation without changing it. The server of the model is asked"
        " for nothing that costs tokens; to a bucket that stores files, a small object is written.",
    )
    parser.add_argument(
        "part", nargs="?", choices=("sandbox",), help="only this, with every detail"
    )
    add_json(parser)
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: Namespace, context: CommandContext) -> int:
    """Print every check; return 3 if one of them failed."""
    application, output = context.application(), CommandOutput(Output())
    if args.part == "sandbox":
        checks = application.check_sandbox(args.config)
    else:
        checks = list(_all_checks(application, args.config))
    if args.json:
        output.json([check._asdict() for check in checks])
    else:
        for check in checks:
            output.line(format_check(check))
    return CONFIG if any(check.state == "fail" for check in checks) else OK


def _all_checks(application: Application, config: str | None) -> Iterator[Check]:
    is_usable = True
    for check in run_checks(application, config):
        if check.name == "model" and check.state == "ok":
            yield from application.check_models(config)
            continue
        yield check
        if check.name == "settings" and check.state == "fail":
            is_usable = False
            with contextlib.suppress(ConfigError, HomeError):  # told already
                yield from application.check_models(config)
    if is_usable:
        yield application.check_attachments(config)
        yield from application.check_lark(config)


def format_check(check: Check) -> str:
    """Return a check on one line."""
    advice = f" {check.advice}" * bool(check.advice)
    return f"{check.state:<4}  {check.name}: {check.sentence}{advice}"


def run_checks(application: Application, config: str | None) -> Iterator[Check]:
    """Yield the results of all checks; ends early when a later check needs a failed one."""
    yield Check("python", "ok", f"Python {sys.version.split()[0]}.")
    try:
        home = home_folder.locate()
    except HomeError as error:
        yield Check("home", "fail", str(error))
        return
    yield _home(home)
    yield _token(home)
    yield _gateway(home)
    yield from _channels(home)
    yield _disk(home)
    yield _ripgrep()
    try:
        settings = application.settings(config)
    except (ConfigError, HomeError) as error:
        yield Check("settings", "fail", str(error))
        return
    yield _settings(settings)
    walls = application.check_sandbox(config)
    yield _sandbox([each for each in walls if each.name != _PACKAGES])
    yield from (each for each in walls if each.name == _PACKAGES)
    yield _model(settings)
    if settings.cost_limit:
        yield Check("cost", "warn", settings.cost_limit, f"Set llm.prices.{settings.model}.")
    if settings.transcription:
        message = f"Recordings are transcribed by {settings.transcription} (not tested)."
        yield Check("audio", "ok", message)
    yield _web_search(settings)
    yield application.check_database(config)
    yield from application.check_processes(config)
    yield from application.check_dead_letters(config)
    yield from application.check_refused_tools(config)


def _sandbox(walls: list[Check]) -> Check:
    """Return the checks of the sandboxes as one; the last is of the one that is used."""
    last = walls[-1]
    if all(wall.state == "ok" for wall in walls if wall.name == last.name):
        provider = last.name.removeprefix("sandbox ")
        message = f"Commands run isolated ({provider}): larkspur doctor sandbox shows how."
        return Check("sandbox", "ok", message)
    reason = next(wall for wall in walls if wall.state != "ok")
    if reason.name == last.name:
        return reason._replace(name="sandbox")
    return Check("sandbox", last.state, last.sentence, reason.sentence)


def _home(home: Path) -> Check:
    try:
        found = home.stat()
    except FileNotFoundError:
        return Check("home", "ok", f"{home} does not exist yet; the first start creates it.")
    except OSError as error:
        return Check("home", "fail", f"{home} cannot be used: {error.strerror}.")
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return Check("home", "fail", f"{home} is not a folder that you own.", "Set LARKSPUR_HOME.")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        return Check("home", "fail", f"{home} cannot be written.", "Set LARKSPUR_HOME.")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check("home", "warn", f"{home} is open to other users.", f"chmod 700 {home}")
    return Check("home", "ok", f"Only you can access {home}.")


def _token(home: Path) -> Check:
    try:
        if not os.path.lexists(home / "token") and home_folder.find_gateway(home) is None:
            return Check("token", "ok", "No local token yet; `larkspur serve` creates it.")
        home_folder.read_token(home)
    except HomeError as error:
        return Check("token", "fail", str(error))
    return Check("token", "ok", "Only you can read the local token.")


def _gateway(home: Path) -> Check:
    try:
        address = home_folder.find_gateway(home)
    except HomeError as error:
        return Check("gateway", "fail", str(error))
    if address is None:
        return Check("gateway", "ok", "No gateway runs; commands work in their own process.")
    if HttpEndpoint(address.url, str).answers():
        model = f"{address.provider}, {address.model}"
        return Check("gateway", "ok", f"A gateway runs at {address.url} ({model}).")
    message = f"The gateway process {address.pid} does not answer at {address.url}."
    return Check("gateway", "warn", message, "Check its log, or restart it.")


def _channels(home: Path) -> Iterator[Check]:
    """Yield the state of each chat channel of the gateway that runs."""
    try:
        address = home_folder.find_gateway(home)
        if address is None:
            return
        endpoint = HttpEndpoint(address.url, lambda: home_folder.read_token(home))
        found = json.loads(endpoint.request("GET", "/health").body).get("channels", {})
        app = json.loads(endpoint.request("GET", "/api/channels/lark").body)
    except (HomeError, Unreachable, ValueError):  # told already
        return
    if not found:
        advice = "Connect an app in Settings → Lark, or try `larkspur serve --lark-sim`."
        yield Check("channels", "ok", "No chat channel is set up.", advice)
    for name, one in found.items():
        last = one.get("last_event") or "none yet"
        simulated = "the simulator of Lark: " if name == "lark" and app.get("simulated") else ""
        sentence = f"{simulated}{one['detail']}, since {one['since']}; last event: {last}."
        advice = "" if one["ok"] else "Settings → Lark, or the check of the app below, may say why."
        yield Check(f"channel {name}", "ok" if one["ok"] else "warn", sentence, advice)


def _disk(home: Path) -> Check:
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    message = f"{free / 2**30:.1f} GiB free at {existing}."
    if free < _MIN_FREE_BYTES:
        return Check("disk", "warn", message, "Messages are refused when the disk is full.")
    return Check("disk", "ok", message)


def _ripgrep() -> Check:
    if found := shutil.which("rg"):
        return Check("ripgrep", "ok", f"File search uses {found}.")
    return Check(
        "ripgrep", "warn", "Not found; file search is slower without it.", "Install ripgrep."
    )


def _settings(settings: SettingsSummary) -> Check:
    noun = "setting" if settings.configured == 1 else "settings"
    if settings.file is not None:
        message = f"{settings.configured} {noun} from {settings.file} and the environment."
        return Check("settings", "ok", message)
    count = f"{settings.configured} {noun}" if settings.configured else "no settings"
    return Check("settings", "ok", f"No configuration file; {count} from the environment.")


def _web_search(settings: SettingsSummary) -> Check:
    usable = [title for title, missing in settings.search_providers if not missing]
    problems = [f"{title}: {missing}." for title, missing in settings.search_providers if missing]
    if usable:
        message = f"web_search asks {', then '.join(usable)} (not tested)."
    else:
        message = "web_search is not offered: no search provider can be asked."
    return Check("web_search", "warn" if problems else "ok", message, " ".join(problems))


def _model(settings: SettingsSummary) -> Check:
    if settings.provider == "offline":
        advice = "Set ANTHROPIC_API_KEY to use a real one."
        return Check("model", "warn", "The offline demo model is in use.", advice)
    if settings.key_error:
        return Check("model", "fail", settings.key_error)
    name = f"{settings.model} of {settings.provider}"
    return Check("model", "ok", f"{name}; its API key is set (not tested).")
