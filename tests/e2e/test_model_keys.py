"""A key that is refused leads to where another one is entered, which tasks then use."""

from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from internal.i18n.runs import RunMessages
from tests.support.cli_environment import BOTH_TRANSPORTS, CliEnvironment, Result
from tests.support.gateway_process import LARKSPUR
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Fault, Reply
from tests.support.terminal import start_terminal

KEY = "sk-proj-" + "k3y" * 12
USED_UP = '{"error": {"code": "insufficient_quota", "message": "Your quota is used up."}}'


async def store(cli: CliEnvironment, text: str, *provider: str) -> Result:
    """Give a line to the command that stores a key."""
    process = await cli.start("models", "key", *provider, stdin=PIPE)
    out, err = await process.communicate(f"{text}\n".encode())
    return Result(process.returncode, out, err)


@BOTH_TRANSPORTS
async def test_a_refused_key_is_replaced_where_the_terminal_says(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with ScriptedOpenAI([Reply(text="It works.")], api_key=KEY) as model:
        environ |= {"OPENAI_BASE_URL": model.base_url, "LARKSPUR_AGENT__GATES": "off"}
        cli = CliEnvironment(home, environ, model)
        wrong = await store(cli, "sk-wrong-key-0123456789", "openai")
        assert wrong.code == 0
        if way == "gateway":
            await cli.serve()
        refused = await cli.shot("-p", "hello")
        stored = await store(cli, f"OPENAI_API_KEY='{KEY}'")
        answered = await cli.shot("-p", "hello")
        for gateway in cli.gateways:
            gateway.terminate()
            await gateway.wait()
    sentence = RunMessages("en").ended("error", "model_key_refused")
    hint = "To enter another key: larkspur models key"
    assert refused.code == 3
    assert sentence in refused.err
    assert hint in refused.err
    assert ("/settings/models#key" in refused.err) == (way == "gateway")
    assert "The key of OpenAI is stored" in stored.err
    assert (answered.code, answered.out) == (0, b"It works.\n")
    assert KEY not in refused.err + stored.err + answered.err


@pytest.mark.slow
async def test_what_is_no_usable_key_changes_nothing(home: Path, environ: dict[str, str]) -> None:
    settings = home / "settings.json"
    async with ScriptedOpenAI([]) as model:
        cli = CliEnvironment(home, environ, model)
        for text, provider, sentence in (
            ("", (), "No key was entered"),
            ("nonsense", (), "larkspur models key PROVIDER"),
            ("sk-" + "0a" * 16, (), "deepseek, qwen"),
            (KEY, ("nobody",), "There is no provider nobody."),
            (KEY, ("offline",), "needs no key"),
        ):
            shot = await store(cli, text, *provider)
            assert (shot.code, sentence in shot.err) == (2, True), shot.err
        environ |= {"OPENAI_API_KEY": "sk-of-the-environment"}
        shot = await store(cli, KEY, "openai")
    assert "comes from environment OPENAI_API_KEY. Change it there." in shot.err
    assert not settings.exists()


@pytest.mark.slow
async def test_a_session_says_where_a_key_is_entered_and_the_key_is_not_shown(
    home: Path, environ: dict[str, str], work: Path
) -> None:
    used_up = Fault("status", status=429, body=USED_UP)
    async with ScriptedOpenAI([Reply(fault=used_up)], api_key=KEY) as model:
        environ |= {"OPENAI_BASE_URL": model.base_url, "LARKSPUR_LLM__PROVIDER": "openai"}
        async with start_terminal([LARKSPUR, "models", "key"], environ, work, (100, 30)) as tty:
            await tty.wait_for("Paste the key")
            tty.type(f"{KEY}\r")
            await tty.wait_for("The key of OpenAI is stored")
            assert await tty.wait_exit() == 0
            assert KEY.encode() not in bytes(tty.raw)
        async with start_terminal([LARKSPUR], environ, work, (100, 30)) as tty:
            await tty.wait_for("/help")
            tty.type("hello\r")
            await tty.wait_for("To enter another key: larkspur models key")
            tty.type("\x04")
            assert await tty.wait_exit() == 0
    assert KEY in (home / "settings.json").read_text(encoding="utf-8")
