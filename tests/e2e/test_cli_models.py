"""`larkspur models` as a process: known models, their prices and keys."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from internal.model_providers.registry import PROVIDERS

LARKSPUR = Path(sys.executable).with_name("larkspur")
CANARY = "sk-canary-0123456789"


def models(
    *argv: str, environ: dict[str, str], cwd: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    command = [str(LARKSPUR), "models", *argv]
    whole = {**environ, **more}
    return subprocess.run(
        command,
        env=whole,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_every_provider_is_listed_with_its_key_limits_and_prices(
    environ: dict[str, str], tmp_path: Path
) -> None:
    done = models("--json", environ=environ, cwd=tmp_path, DEEPSEEK_API_KEY=CANARY)
    assert (done.returncode, done.stderr) == (0, "")
    assert CANARY not in done.stdout
    rows = json.loads(done.stdout)
    assert [p.name for p in PROVIDERS] == list(dict.fromkeys(row["provider"] for row in rows))
    firsts = {row["provider"]: row for row in reversed(rows)}
    assert {name: row["key"] for name, row in firsts.items()} == {
        **dict.fromkeys((p.name for p in PROVIDERS if p.needs_key(None)), "missing"),
        "deepseek": "set",
        **dict.fromkeys(("bedrock", "vertex", "foundry", "ollama", "offline"), "not needed"),
    }
    assert {row["model"] for row in firsts.values()} == {p.default_model for p in PROVIDERS}
    assert [row["model"] for row in rows if row["in_use"]] == ["deepseek-flash"]
    assert firsts["openai"]["context_window"] == 1_050_000
    assert firsts["openai"]["price"]["input"] == 2.0
    assert firsts["ark"]["price"] is None


@pytest.mark.slow
def test_unknown_model_in_use_is_listed(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "llm: {provider: ollama, model: mine, prices: {mine: {input: 7, output: 8}}}"
    )
    done = models("--config", "c.yaml", environ=environ, cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["ollama", "mine", "*", "not", "needed", "-", "-", "7", "8", "0"] in lines


@pytest.mark.parametrize("text", ["llm: {provider: acme}", "llm: ["])
def test_invalid_settings_are_reported_in_one_sentence(
    environ: dict[str, str], tmp_path: Path, text: str
) -> None:
    (tmp_path / "c.yaml").write_text(text)
    done = models("--config", "c.yaml", environ=environ, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
