"""`larkspur models key`; `tests/e2e/test_model_keys.py` has the gateway and the terminal."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from internal.channels.cli.exit_codes import OK, USAGE
from tests.support.command_runner import CommandRunner

KEY = "sk-ant-api03-" + "k3y" * 30


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LARKSPUR_HOME", str(home))
    return home


@contextmanager
def piped(text: str) -> Generator[None]:
    """Make a text the standard input of this process."""
    before, (reading, writing) = os.dup(0), os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_the_key_of_standard_input_is_stored_for_the_provider_of_its_form(
    run: CommandRunner, home: Path
) -> None:
    with piped(f"Bearer {KEY}\n"):
        stored = run("models", "key")
    assert (stored.code, stored.out) == (OK, "")
    assert "The key of Anthropic is stored." in stored.err
    assert KEY not in stored.err
    settings = json.loads((home / "settings.json").read_text())["llm"]
    assert (settings["provider"], settings["keys"]) == ("anthropic", {"anthropic": KEY})


def test_a_key_of_no_known_form_needs_its_provider(run: CommandRunner, home: Path) -> None:
    with piped("nonsense\n"):
        refused = run("models", "key")
    assert refused.code == USAGE
    assert "larkspur models key PROVIDER" in refused.message
    assert not (home / "settings.json").exists()
