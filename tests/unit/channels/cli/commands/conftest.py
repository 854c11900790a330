"""Commands in this process, on a temporary home with the offline model."""

from functools import partial

import pytest

from internal.config.loader import load
from larkspur.application import Application
from tests.support.command_runner import CommandRunner


@pytest.fixture
def application(environ: dict[str, str]) -> Application:
    return Application(partial(load, environ=environ))


@pytest.fixture
def run(application: Application, capfd: pytest.CaptureFixture[str]) -> CommandRunner:
    return CommandRunner(application, capfd)
