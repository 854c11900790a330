"""Number of modules and functions that a Lark message and a permission question run through.

Functions that an idle gateway calls are subtracted.
"""

import ast
import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.model import App, ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests import ROOT
from tests.bench.processes import PYTHON, Server, gateway, with_model
from tests.bench.table import Row, Table

pytestmark = pytest.mark.bench

APP = App("cli_bench", "secret-for-benches")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
LIST = ROOT / "build" / "lark-message.md"
"""Where the list of ARCHITECTURE is written as it is now."""
SETTLE_SECONDS = 3.0
IDLE_SECONDS = 12.0
"""Longer than the pauses of most loops."""


def buttons(node: Any) -> list[str]:
    """Return the labels of the buttons in a card, in order."""
    match node:
        case {"tag": "button", "text": {"content": str(label)}}:
            return [label]
        case dict():
            return [label for each in node.values() for label in buttons(each)]
        case list():
            return [label for each in node for label in buttons(each)]
        case _:
            return []


def take(file: Path) -> str | None:
    """Return the content of a file and remove the file; None if there is no file."""
    if not file.exists():
        return None
    text = file.read_text()
    file.unlink()
    return text


class TracedGateway:
    """A gateway whose calls can be recorded."""

    def __init__(self, server: Server, output: Path) -> None:
        self._server, self._output = server, output

    async def start_recording(self) -> None:
        """Return when calls are recorded."""
        os.kill(self._server.pid, signal.SIGUSR1)
        await self._written(self._output.with_suffix(".started"))

    async def recording(self) -> dict[str, list[str]]:
        """Return the modules and functions called since the recording started."""
        os.kill(self._server.pid, signal.SIGUSR2)
        found: dict[str, list[str]] = json.loads(await self._written(self._output))
        return found

    async def _written(self, file: Path) -> str:
        """Wait until the gateway has written a file; return its content and remove it."""
        async with asyncio.timeout(10):
            while (text := take(file)) is None:  # noqa: ASYNC110 - written by another process
                await asyncio.sleep(0.01)
        return text


@asynccontextmanager
async def traced(home: Path, model: str) -> AsyncGenerator[tuple[LarkSim, TracedGateway]]:
    async with LarkSim([APP]) as sim:
        settings = {
            "LARKSPUR_CHANNELS__LARK__ENABLED": "true",
            "LARKSPUR_CHANNELS__LARK__APP_ID": APP.app_id,
            "LARKSPUR_CHANNELS__LARK__APP_SECRET": APP.secret,
            "LARKSPUR_CHANNELS__LARK__DOMAIN": sim.url,
            "LARKSPUR_CHANNELS__LARK__ACCESS__OPERATE": '["*"]',
            "LARKSPUR_AGENT__GATES": "off",
        }
        output = home.with_name("calls.json")
        program = (PYTHON, "-m", "tests.bench.trace_calls", str(output))
        run = gateway(home, program=program, **with_model(model), **settings)
        server = await asyncio.to_thread(run.__enter__)
        try:
            await sim.until(lambda _: bool(sim.lark.delivery.connections), 60)
            yield sim, TracedGateway(server, output)
        finally:
            await asyncio.to_thread(run.__exit__, None, None, None)


Recording = dict[str, list[str]]


def without(found: Recording, idle: Recording) -> Recording:
    """Return the functions that an idle gateway does not call, and their modules, in order."""
    at_rest = {*idle["functions"]}
    functions = [each for each in found["functions"] if each not in at_rest]
    modules = dict.fromkeys(function.partition(":")[0] for function in functions)
    return {"functions": functions, "modules": [*modules]}


def module_lines(modules: Iterable[str]) -> list[str]:
    """Return a line for each module: its path, and the first sentence of its docstring."""
    lines = []
    for number, module in enumerate(modules, 1):
        about = ast.get_docstring(ast.parse((ROOT / module).read_text())) or ""
        sentence = re.split(r"\.(?:\s|$)", " ".join(about.split("\n\n")[0].split()))[0]
        lines.append(f"{number}. `{module}`: {sentence}")
    return lines


def listed_modules() -> set[str]:
    """Return the modules of a Lark message that the documentation lists."""
    return {*re.findall(r"(?m)^\d+\. `(internal/[^`]+)`: ", ARCHITECTURE.read_text())}


async def counted(home: Path, model: str) -> tuple[Recording, Recording, Recording]:
    """Return the calls for a message, for a question, both with answers, and of an idle time."""
    async with traced(home, model) as (sim, server):
        person = sim.people[0]
        chat = sim.dm(person)

        async def send(text: str) -> str:
            return await sim.send_text(person, chat, text)

        def bot_messages() -> list[ChatMessage]:
            return [m for m in sim.messages(chat) if m.sender_type == "app" and not m.deleted]

        async def answered(sent: str, text: str) -> None:
            def is_there(_: object) -> bool:
                return any(m.parent_id == sent and text in m.content for m in bot_messages())

            await sim.until(is_there, 60)

        for record in (False, True):  # the first message opens the connection to the model
            if record:
                await asyncio.sleep(SETTLE_SECONDS)
                await server.start_recording()
            await answered(await send("bench:words:10"), "word word")
        await asyncio.sleep(SETTLE_SECONDS)  # the progress card gets its final state
        message = await server.recording()

        await server.start_recording()
        sent = await send("bench:calls:1")

        def question_cards() -> list[tuple[str, str]]:
            """The cards with buttons: message id, and the label of the first button."""
            labels = ((m.message_id, buttons(sim.card(m.message_id))) for m in bot_messages())
            return [(message_id, found[0]) for message_id, found in labels if found]

        await sim.until(lambda _: bool(question_cards()), 60)
        await asyncio.sleep(1)  # the gateway stores that the card arrived
        await sim.click(person, *question_cards()[0])
        await answered(sent, "word word")
        await asyncio.sleep(SETTLE_SECONDS)
        question = await server.recording()

        await server.start_recording()
        await asyncio.sleep(IDLE_SECONDS)
        idle = await server.recording()
        return without(message, idle), without(question, idle), idle


def test_hops(tmp_path: Path, model: str, table: Table) -> None:
    message, question, idle = asyncio.run(counted(tmp_path / "home", model))
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text("\n".join(module_lines(message["modules"])) + "\n")
    unlisted = {*message["modules"]} - listed_modules()
    table.add(
        Row("modules per Lark message", "", [len(message["modules"])]),
        Row("functions per Lark message", "", [len(message["functions"])]),
        Row("modules, a question and its answer", "", [len(question["modules"])]),
        Row("functions, a question and its answer", "", [len(question["functions"])]),
        Row("functions of an idle gateway", "", [len(idle["functions"])]),
        Row("modules per Lark message, not in docs/architecture.md", "", [len(unlisted)]),
    )
