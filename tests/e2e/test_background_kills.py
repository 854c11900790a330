"""Output of background commands, read on every channel after the gateway was killed."""

import re
from pathlib import Path

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests.support.gateway_process import LARKSPUR
from tests.support.lark_gateway import APP
from tests.support.lark_process import replies, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply
from tests.support.terminal import start_terminal

SERVES = "echo 'at http://localhost:5173/'; echo ready; exec sleep 600"
FAILS = "echo no room; exit 3"
SETTINGS = {"LARKSPUR_SANDBOX__PROVIDER": "auto", "LARKSPUR_AGENT__GATES": "off"}

pytestmark = [pytest.mark.slow, pytest.mark.needs("namespaces")]


async def test_output_outlives_a_killed_gateway(tmp_path: Path) -> None:
    started = [
        Call("shell", {"command": command, "background": True, "keep": True})
        for command in (SERVES, FAILS)
    ]
    script = [Reply(calls=started), Reply("It serves.")]
    async with LarkSim([APP], speed=100.0) as sim, ScriptedOpenAI(script) as model:
        person = sim.people[0]
        async with served(tmp_path, sim, model, **SETTINGS) as gateway:
            await gateway.until_health("connected", sim)
            await sim.send_text(person, sim.dm(person), "serve it")
            await sim.until(lambda _: replies(sim) == ["It serves."])
            [session] = (await gateway.client.get("/api/sessions")).json()["sessions"]
            path = f"/api/sessions/{session['session_id']}/commands"
            while True:
                commands = (await gateway.client.get(path)).json()["commands"]
                outputs = [
                    (await gateway.client.get(f"{path}/{each['id']}/output")).json()
                    for each in commands
                ]
                if "ready" in outputs[0]["text"] and outputs[1]["end"]:
                    break
                await sim.lark.changed_within(0.05)
            assert [each["ended"] is None for each in commands] == [True, False]
            gateway.kill()
            await gateway.over()
        async with served(tmp_path, sim, model, **SETTINGS) as gateway:
            await gateway.until_health("connected", sim)
            commands = (await gateway.client.get(path)).json()["commands"]
            assert [each["ended"] is None for each in commands] == [False, False]
            assert commands[0]["address"] == "http://localhost:5173/"
            output = (await gateway.client.get(f"{path}/{commands[0]['id']}/output")).json()
            assert output["text"] == "at http://localhost:5173/\nready\n"
            assert output["end"] == "[ended with Larkspur]"
            await sim.send_text(person, sim.dm(person), "/ps")
            await sim.until(lambda _: len(replies(sim)) == 2)
            listed = replies(sim)[1]
            for words in ("localhost:5173", "ready", "no room", "exit code 3", "(ended)"):
                assert words in listed
            assert "running" not in listed
            await in_a_terminal(tmp_path, session["session_id"])


async def in_a_terminal(folder: Path, session_id: str) -> None:
    environ = {
        "LARKSPUR_HOME": str(folder / "home"),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    (work := folder / "work").mkdir()
    async with start_terminal([LARKSPUR, "-r", session_id], environ, work, (100, 40)) as tty:
        await tty.wait_for("It serves.")
        tty.type("/ps\r")
        await tty.wait_for("exit code 3", "http://localhost:5173/")
        assert len(set(re.findall(r"bg-\w+", tty.screen.text))) == 2
        tty.type("/ps sleep\r")
        await tty.wait_for("ready", "[ended with Larkspur]")
        tty.type("\x04")
        assert await tty.wait_exit() == 0
