"""A slash command of every channel is one module and its texts, and works in Lark and a terminal.

The test extends a copy of the package as a contributor would, and serves it.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests import ROOT
from tests.support.lark_gateway import APP
from tests.support.lark_process import RUN, replies, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.skills import write_skill
from tests.support.terminal import start_terminal

MODULE = '''
"""The command that counts the skills."""

from internal.channels.commands.command import Arguments, ChannelContext, SharedCommand


async def _count(context: ChannelContext, which: str) -> None:
    found = await (await context.open_gateway()).skills()
    counted = [each for each in found if which or each.state == "offered"]
    context.say(context.texts_of(COMMAND.name)("counted", count=len(counted)))


COMMAND = SharedCommand("count", _count, Arguments("[all]", ("all",)))
'''
TEXTS = {
    "en": {
        "words": ["count"],
        "help": "count the skills in use, or all",
        "how": "Use `{command}` or `{command} all`.",
        "counted": "Skills: {count}.",
    },
    "zh": {
        "words": ["点数"],
        "help": "数一数技能",
        "how": "请发送 `{command}` 或 `{command} 全部`。",
        "counted": "共 {count} 个技能。",
    },
}


def extend(folder: Path) -> None:
    """Copy the package and add the command: a module, and a section of the texts."""
    shutil.copytree(ROOT / "internal", folder / "internal")
    (folder / "internal" / "channels" / "commands" / "count.py").write_text(MODULE.lstrip())
    texts = folder / "internal" / "i18n" / "commands.json"
    content = json.loads(texts.read_text(encoding="utf-8"))
    content["every"]["count"] = TEXTS
    texts.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.slow
async def test_a_command_of_every_channel_is_one_module_and_its_texts(
    tmp_path: Path, home: Path, work: Path, environ: dict[str, str]
) -> None:
    extend(tmp_path / "extended")
    write_skill(home)
    paths = f"{tmp_path / 'extended'}:{ROOT}:{ROOT / 'cmd'}"
    async with (
        LarkSim([APP], speed=100.0) as sim,
        ScriptedOpenAI([]) as model,
        served(tmp_path, sim, model, PYTHONPATH=paths) as gateway,
    ):
        await gateway.until_health("connected", sim)
        chat, said = sim.dm(sim.people[0]), list[str]()
        for text, sentence in (
            ("/count", "Skills: 0."),
            ("/count all", "Skills: 1."),
            ("/count three", "Use /count or /count all."),
            ("/点数 全部", "共 1 个技能。"),
            ("/conut", "Did you mean /count?"),
            ("/help", "/count: count the skills in use, or all"),
            ("/帮助", "/点数\uff1a数一数技能"),
        ):
            await sim.send_text(sim.people[0], chat, text)
            said.append(sentence)
            await sim.until(lambda _: len(replies(sim)) == len(said))
        assert all(
            sentence in reply.replace("`", "")
            for sentence, reply in zip(said, replies(sim), strict=True)
        )
        terminal = {**environ, "PYTHONPATH": paths}
        async with start_terminal([sys.executable, "-c", RUN], terminal, work) as tty:
            await tty.wait_until(lambda: "/help" in tty.screen.text)
            for typed, shown in (
                ("/cou", ("/count", "count the skills in use, or all")),  # the menu
                ("nt\r", ("Skills: 0.",)),
                ("/点数 all\r", ("Skills: 1.",)),
                ("/count three\r", ("Usage: /count [all]",)),
                ("/conut\r", ("Did you mean /count?",)),
                ("/help\r", ("/count [all]", "count the skills in use, or all")),
            ):
                tty.type(typed)
                await tty.wait_for(*shown)
