"""Entry point of `larkspur`.

Imports are inside the functions: `--version`, `--help` and a one-shot task through a running
gateway must not import modules that only the other commands need.
"""
# ruff: noqa: PLC0415 - see the docstring; architecture.md allows it here

import errno
import io
import os
import sys

TYPE_CHECKING = False  # the import of typing takes as long as the rest of `--version`
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

    from internal.channels.cli.application import Application

# as in exit_codes.py, which `--version` does not import
_FAILED, _INTERRUPTED, _BROKEN_PIPE = 1, 130, 141
_STANDARD_DESCRIPTORS = 3
_WITHOUT_PLUGINS = {"serve", "worker", "-p"}
"""Commands whose environment no program inherits, except a browser."""


def run() -> "NoReturn":
    """Run the command and end the process.

    The interpreter is not torn down: that takes as long as a tenth of a one-shot task, and crashes
    if a thread is in OpenSSL.
    """
    code = main()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def main() -> int:
    """Run the command, write all output and return the exit code."""
    _guard_descriptors()
    sys.excepthook = _print_exception
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # independent of the locale
    try:
        try:
            return _run(sys.argv[1:])
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        # the rest of the buffer must not be written again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        # not even the module with the sentences may be importable
        sys.stderr.write("larkspur: The machine has no free file descriptors (see ulimit -n).\n")
        return _FAILED


def _run(argv: list[str]) -> int:
    from larkspur.version import VERSION

    if argv == ["--version"]:
        sys.stdout.write(f"larkspur {VERSION}\n")
        return 0
    if argv and argv[0] in _WITHOUT_PLUGINS:
        # plugins are code of any installed package; looking for them reads the metadata of all
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # noqa: TID251 - for pydantic
    from internal.channels.cli.commands.context import CommandContext
    from internal.channels.cli.commands.registry import dispatch
    from internal.channels.cli.exit_codes import CliExit
    from internal.channels.cli.output import print_error

    try:
        return dispatch(argv, CommandContext(_application, VERSION))
    except SystemExit:  # help was printed
        return 0
    except CliExit as exit_:
        leaving = exit_
    except BrokenPipeError:
        raise
    except Exception as error:
        from larkspur.application import describe_error

        described = describe_error(error)
        if described is None:
            raise
        leaving = described
    if message := str(leaving):
        print_error(message)
    return leaving.code


def _application() -> "Application":
    import gc

    gc.disable()  # it takes an eighth of the time of these imports and finds nothing there
    try:
        from larkspur.application import Application
    finally:
        gc.freeze()  # what they have made is never looked through
        gc.enable()
    return Application()


def _print_exception(
    kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
) -> None:
    """Print an unexpected exception with every secret masked."""
    import traceback

    from internal.agent.domain.secrets import mask_secrets

    sys.stderr.write(mask_secrets("".join(traceback.format_exception(kind, error, trace))))


def _guard_descriptors() -> None:
    """Open closed standard descriptors, so that no other file gets their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) < _STANDARD_DESCRIPTORS:
        pass
    os.close(opened)
