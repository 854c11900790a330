"""Commands of the terminal, run in this process."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.registry import dispatch
from internal.channels.cli.exit_codes import CliExit
from larkspur.application import Application


class CommandResult(NamedTuple):
    """The exit code and the output of a command; `message` is the text of its `CliExit`."""

    code: int
    out: str
    err: str
    message: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandRunner:
    """Dispatches command lines to the application of this process."""

    def __init__(self, application: Application, capfd: pytest.CaptureFixture[str]) -> None:
        self.context = CommandContext(lambda: application, "1.2.3")
        self._capfd = capfd

    def __call__(self, *argv: str) -> CommandResult:
        """Run a command line unchanged."""
        message = ""
        with logging_restored():
            try:
                code = dispatch(argv, self.context)
            except CliExit as exit_:
                code, message = exit_.code, str(exit_)
        out, err = self._capfd.readouterr()
        return CommandResult(code, out, err, message)

    def local(self, *argv: str) -> CommandResult:
        """Run a command line with `--local`, so that no running gateway is used."""
        return self(*argv, "--local")

    def ask(self, prompt: str) -> dict[str, Any]:
        """Run a one-shot task and return its summary."""
        summary: dict[str, Any] = self.local("-p", prompt, "--output-format", "json").json
        return summary


def _close_file(stream: Any) -> None:
    """Close the log file of a session; the standard streams stay open."""
    if isinstance(getattr(stream, "name", None), int) and stream.fileno() > 2:
        stream.close()


@contextmanager
def logging_restored() -> Generator[None]:
    """Undo the changes made by `configure_logging`."""
    loggers = [logging.getLogger(name) for name in (None, "internal", "larkspur")]
    before = [(one, one.level, one.handlers[:]) for one in loggers]
    try:
        yield
    finally:
        for logger, level, handlers in before:
            for added in logger.handlers:
                if added not in handlers and isinstance(added, logging.StreamHandler):
                    _close_file(added.stream)
            logger.setLevel(level)
            logger.handlers[:] = handlers
