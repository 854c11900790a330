"""The question for a key at the first start of a session."""

import json
import stat
from pathlib import Path

import pytest

from tests.support.gateway_process import LARKSPUR
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply
from tests.support.terminal import TerminalProcess, start_terminal

KEY = "sk-proj-" + "k3y" * 12


async def ask(tty: TerminalProcess, text: str, *expected: str) -> None:
    tty.type(f"{text}\r")
    await tty.wait_for(*expected)


async def test_a_pasted_key_is_hidden_stored_and_used(
    home: Path, environ: dict[str, str], work: Path
) -> None:
    async with ScriptedOpenAI([Reply(text="It works.")], api_key=KEY) as model:
        environ |= {"OPENAI_BASE_URL": model.base_url, "LARKSPUR_AGENT__GATES": "off"}
        async with start_terminal([LARKSPUR], environ, work, (100, 30)) as tty:
            await tty.wait_for("Paste a key")
            await ask(tty, "a wrong key", "does not look like a key")
            await tty.wait_until(lambda: tty.screen.text.count("Paste a key") == 2)
            await ask(
                tty, f"export OPENAI_API_KEY='{KEY}'", "The key of OpenAI is stored in", "/help"
            )
            await ask(tty, "hello", "It works.", "✓")
            assert KEY.encode() not in bytes(tty.raw)
            tty.type("\x04")
            assert await tty.wait_exit() == 0
    settings = home / "settings.json"
    assert settings.read_text(encoding="utf-8").count(KEY) == 1
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600


async def test_whose_key_it_is_is_asked_where_its_form_does_not_say(
    home: Path, environ: dict[str, str], work: Path
) -> None:
    key = "sk-" + "0a" * 16
    async with start_terminal([LARKSPUR], environ, work, (100, 30)) as tty:
        await tty.wait_for("Paste a key")
        await ask(tty, key, "1 DeepSeek, 2 Qwen", "Enter the number")
        await ask(tty, "2", "The key of Qwen is stored in", "/help")
        tty.type("\x04")
        assert await tty.wait_exit() == 0
    stored = json.loads((home / "settings.json").read_text(encoding="utf-8"))
    assert stored["llm"] == {"provider": "qwen", "keys": {"qwen": key}}


@pytest.mark.slow
async def test_enter_continues_with_the_demo_model_and_is_asked_once(
    environ: dict[str, str], work: Path
) -> None:
    for is_first, language in ((True, "zh_CN.UTF-8"), (False, "C.UTF-8")):
        local = {**environ, "LANG": language}
        async with start_terminal([LARKSPUR], local, work, (100, 30)) as tty:
            if is_first:
                await tty.wait_for("按回车继续使用演示模型")
                tty.type("\r")
            await tty.wait_for("/help", "offline-demo")
            await ask(tty, "what is 6*7", "6*7 = 42", "✓")
            assert is_first or b"Paste a key" not in bytes(tty.raw)
            tty.type("\x04")
            assert await tty.wait_exit() == 0


@pytest.mark.parametrize("known", [{"CI": "true"}, {"LARKSPUR_LLM__PROVIDER": "offline"}])
@pytest.mark.first_rows(1)
async def test_nobody_is_asked_in_automation_or_with_settings(
    known: dict[str, str], environ: dict[str, str], work: Path
) -> None:
    async with start_terminal([LARKSPUR], {**environ, **known}, work, (100, 30)) as tty:
        await tty.wait_for("/help")
        assert b"Paste a key" not in bytes(tty.raw)
