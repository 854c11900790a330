"""The command `larkspur`: reads the command line and does what it says.

Imports stand inside the functions: `--version`, `--help` and a one shot through a running gateway
must not wait for what only the others need.
"""
# ruff: noqa: PLC0415 - the reason stands above; architecture.md allows it here

import io
import os
import sys

TYPE_CHECKING = False  # as in typing, which takes as long to import as all of `--version`
if TYPE_CHECKING:
    from argparse import Namespace

_INTERRUPTED, _BROKEN_PIPE = 130, 141  # as in leaving.py, which not every command imports
_STANDARD_DESCRIPTORS = 3
_LOOKING = {
    *("sessions", "tasks", "cost", "watch", "say", "stop", "completion"),
    *("questions", "answer", "resume", "pair", "rules", "audit"),
}


def main() -> int:
    """Run the command and return its exit code."""
    _guard_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # our words are not all ASCII, whatever the locale
    try:
        try:
            return _run(sys.argv[1:])
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        # what is still buffered must not be tried again at the very end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(argv: list[str]) -> int:
    if argv == ["--version"]:
        return _print_version()
    from internal.channels.cli.exit_codes import CliExit
    from internal.channels.cli.output import print_error

    try:
        return _obey(argv)
    except CliExit as leaving:
        if sentence := str(leaving):
            print_error(sentence)
        return leaving.code


def _obey(argv: list[str]) -> int:
    from larkspur.arguments import parse

    wanted = parse(argv)
    match wanted.command:
        case "serve":
            return _serve(wanted)
        case "lark-sim":
            from larkspur.larksim import lark_sim

            return lark_sim(wanted.port, wanted.app_id, wanted.app_secret)
        case "doctor" | "config" | "events" | "models":
            from larkspur.commands import run

            return run(wanted)
        case command if command in _LOOKING:
            return _look_up(wanted)
        case _ if wanted.version:
            return _print_version()
        case _:
            return _one_shot(wanted) if wanted.shot is not None else _session(wanted)


def _look_up(wanted: "Namespace") -> int:
    if wanted.command == "completion":
        from larkspur.arguments import words
        from larkspur.completion import print_completion

        return print_completion(wanted.shell, *words())
    if wanted.command in {"answer", "resume"}:
        from larkspur import going_on

        return going_on.answer(wanted) if wanted.command == "answer" else going_on.resume(wanted)
    from larkspur.desk import run_lookup

    return run_lookup(wanted)


def _session(wanted: "Namespace") -> int:
    from larkspur.repl import run_repl

    return run_repl(wanted)


def _one_shot(wanted: "Namespace") -> int:
    """Do a task: through the gateway that runs here, or in this process."""
    from larkspur.oneshot import attach, list_sessions, order_of

    order, gateway = order_of(wanted), attach(wanted)
    if gateway is not None:
        return list_sessions(gateway.newest()) if order is None else gateway.run(order)
    from larkspur.inhouse import newest, run

    return list_sessions(newest(wanted.config)) if order is None else run(order, wanted.config)


def _serve(wanted: "Namespace") -> int:
    from larkspur.failing import sentences

    flags = {"server": {"host": wanted.host, "port": wanted.port}}
    with sentences():
        if wanted.lark_sim:
            from larkspur.trying import serve_trying

            return serve_trying(wanted.config, flags)
        from internal.config.loader import load
        from larkspur.serve import serve

        return serve(load(config=wanted.config, flags=flags))


def _print_version() -> int:
    from larkspur.version import VERSION

    sys.stdout.write(f"larkspur {VERSION}\n")
    return 0


def _guard_descriptors() -> None:
    """Fill the standard descriptors that are closed: no database may be opened as number 1."""
    while (opened := os.open(os.devnull, os.O_RDWR)) < _STANDARD_DESCRIPTORS:
        pass
    os.close(opened)
