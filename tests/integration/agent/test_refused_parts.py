"""Refusals of parts by a model server in real runs: sent once, reported once, session continued."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.messages import REFUSED_MESSAGE
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.context_window import REFUSED_RESULT
from internal.i18n.runs import RunMessages
from internal.simulators.lark.user_actions import text_draft, upload_draft
from tests.support import documents
from tests.support.agent_app import Core, open_agent, sound
from tests.support.deferred_tools import accept, define
from tests.support.gateway_process import running_gateway
from tests.support.lark_chats import post
from tests.support.lark_gateway import open_lark_gateway
from tests.support.refusing_server import (
    RefusingOpenAI,
    Rule,
    offered_tools,
    picture_count,
    refuse_pictures,
    refuse_tools,
)
from tests.support.scripted_model import Call, Fault, Reply

LARKSPUR = Path(sys.executable).with_name("larkspur")
PNG = documents.picture("PNG")
BLIND = refuse_pictures("No endpoints found that support image input")
NODE = "iter:1:say"
SENTENCE = "This model cannot see pictures: one picture was left out."


def settings(server: RefusingOpenAI) -> dict[str, str]:
    return {
        "LARKSPUR_LLM__PROVIDER": "openai",
        "LARKSPUR_LLM__MODEL": "gpt-x",
        "LARKSPUR_AGENT__GATES": "off",
        "OPENAI_API_KEY": "key-for-tests",
        "OPENAI_BASE_URL": server.base_url,
    }


@asynccontextmanager
async def refusing(
    home: Path, rule: Rule, script: Sequence[Reply] = ()
) -> AsyncGenerator[tuple[RefusingOpenAI, Core]]:
    async with (
        RefusingOpenAI(rule, script or [Reply("fine")] * 9) as server,
        open_agent(home, [], settings(server), server) as here,
    ):
        yield server, here


def notes(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == "workflow.node.left_out"]


async def test_a_picture_costs_one_request_and_is_told_once_in_a_session(home: Path) -> None:
    async with refusing(home, BLIND) as (server, here):
        picture = await here.services.attachments.put("a.png", "image/png", PNG)
        made = await here.submit("what is this?", attachments=(picture,))
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "fine"
        assert notes(events) == [{"node_id": NODE, "what": "pictures", "count": 1, "tool_name": ""}]
        next_one = await here.submit("and 6*7?", made.session_id)
        await here.end_of(next_one)
        assert notes(await here.durable(next_one)) == []
        assert len(server.refused) == 1
        assert [picture_count(body) for body in server.requests] == [0, 0]


async def test_a_picture_that_a_tool_returns_does_not_end_the_run(home: Path, work: Path) -> None:
    (work / "a.png").write_bytes(PNG)
    script = [Reply(calls=[Call("read_file", {"path": "a.png"})]), Reply("fine")]
    async with refusing(home, BLIND, script) as (server, here):
        made = await here.submit("look at a.png", workspace=str(work))
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "fine"
        assert notes(events) == [
            {"node_id": "iter:2:say", "what": "pictures", "count": 1, "tool_name": ""}
        ]
        assert "cannot see pictures" in str(server.requests[-1]["messages"])


@pytest.mark.slow
async def test_a_lesson_outlives_a_killed_gateway(home: Path, work: Path) -> None:
    (work / "a.png").write_bytes(PNG)
    async with RefusingOpenAI(BLIND, [Reply("fine")] * 9) as server:
        environ = {
            **settings(server),
            "PATH": "/usr/bin:/bin",
            "HOME": str(home.parent),
            "LARKSPUR_HOME": str(home),
            "LARKSPUR_SANDBOX__PROVIDER": "native",
        }
        command = [str(LARKSPUR), "-p", "what is this?", "-f", "a.png"]

        async def ask() -> str:
            one_shot = await asyncio.create_subprocess_exec(
                *command, env=environ, cwd=work, stderr=asyncio.subprocess.PIPE
            )
            _, said = await one_shot.communicate()
            return said.decode()

        async with running_gateway(environ, home, provider="") as gateway:
            assert SENTENCE in await ask()
            gateway.process.send_signal(signal.SIGKILL)
            await gateway.process.wait()
        async with running_gateway(environ, home, provider=""):
            assert SENTENCE in await ask()
        assert len(server.refused) == 1


async def test_a_lark_group_is_told_in_its_language(tmp_path: Path) -> None:
    async with (
        RefusingOpenAI(BLIND, [Reply("fine")] * 3) as server,
        open_lark_gateway(tmp_path, [], environ=settings(server)) as lark,
    ):
        state = lark.sim.lark.state
        key = upload_draft(state, "", PNG, "image").content["image_key"]
        asked = text_draft(state, "这是什么", [lark.sim.app.open_id])
        words = {"tag": "text", "text": asked.content["text"]}
        draft = post([words, {"tag": "img", "image_key": key}])
        await lark.sim.send(lark.person, lark.group, replace(draft, mentions=asked.mentions))
        [reply] = await lark.until_replies(1, lark.group)
    assert reply.startswith("fine")
    assert RunMessages("zh").left_out("pictures", 1) in reply


async def test_a_refused_tool_of_a_server_is_left_out_and_named(home: Path, work: Path) -> None:
    echo = "mcp__few__echo"
    rule = refuse_tools(
        echo, words="tools.function.parameters is not a valid moonshot flavored json schema"
    )
    async with refusing(home, rule) as (server, here):
        define(home, "few", "plain")
        await accept(here, "few")
        made = await here.submit("hello", workspace=str(work))
        assert (await here.end_of(made))[-1]["payload"]["final_answer"] == "fine"
        for _ in range(4):  # the search goes on while requests are answered
            await here.end_of(await here.submit("hello", workspace=str(work)))
        refused = len(server.refused)
        await here.end_of(await here.submit("hello", workspace=str(work)))
        assert len(server.refused) == refused
        assert echo not in offered_tools(server.requests[-1])
        [listed] = await here.services.gateway.mcp.list_all(LOCAL_OWNER)
    [warning] = listed.warnings
    assert echo in warning
    assert "not a valid moonshot flavored json schema" in warning


FORBIDDEN = "the forbidden words"


def filtered(body: dict[str, Any]) -> str:
    words = json.dumps(body["messages"])
    return "Content Exists Risk" if FORBIDDEN in words else ""


async def test_a_session_outlives_a_message_that_a_content_filter_refused(home: Path) -> None:
    async with refusing(home, filtered) as (server, here):
        first = await here.submit("hello")
        await here.end_of(first)
        refused = await here.submit(f"say {FORBIDDEN}", first.session_id)
        end = (await here.end_of(refused))[-1]["payload"]
        assert end["error_code"] == "model_message_filtered"
        last = await here.submit("and now?", first.session_id)
        assert (await here.end_of(last))[-1]["payload"]["final_answer"] == "fine"
        sent = str(server.requests[-1]["messages"])
        assert "hello" in sent
        assert REFUSED_MESSAGE in sent
        # people still see their own messages
        stored = await here.services.gateway.queries.messages(first.session_id, LOCAL_OWNER)
        assert f"say {FORBIDDEN}" in [row.message.text for row in stored]


async def test_a_refused_result_is_left_out_and_the_run_goes_on(home: Path, work: Path) -> None:
    (work / "page.txt").write_text(FORBIDDEN)
    script = [Reply(calls=[Call("read_file", {"path": "page.txt"})]), *[Reply("fine")] * 2]
    async with refusing(home, filtered, script) as (server, here):
        made = await here.submit("read page.txt", workspace=str(work))
        events = await here.end_of(made)
        assert events[-1]["payload"]["final_answer"] == "fine"
        assert [each["what"] for each in notes(events)] == ["results"]
        assert REFUSED_RESULT in str(server.requests[-1]["messages"])


async def test_earlier_messages_that_another_filter_accepted_are_left_out(home: Path) -> None:
    is_filtered = False

    def rule(body: dict[str, Any]) -> str:
        return filtered(body) if is_filtered else ""

    async with refusing(home, rule) as (server, here):
        first = await here.submit(f"say {FORBIDDEN}")
        await here.end_of(first)
        is_filtered = True  # the provider is another one now
        last = await here.submit("and now?", first.session_id)
        events = await here.durable(last) if await here.end_of(last) else []
        assert events[-1]["payload"]["final_answer"] == "fine"
        assert [each["what"] for each in notes(events)] == ["history"]
        assert "and now?" in str(server.requests[-1]["messages"])


def named(role: str = "", text: str = "") -> Reply:
    """Return a refusal that names the message: as GLM does by its role, or OpenRouter by text."""
    body: dict[str, Any] = {"error": {"code": "1301", "message": "unsafe content"}}
    if role:
        body["contentFilter"] = [{"level": 1, "role": role}]
    if text:
        body["error"]["metadata"] = {"flagged_input": text}
    return Reply(fault=Fault("status", status=400, body=json.dumps(body)))


LIST = Reply(calls=[Call("list_dir", {"path": "."})])
NAMED = {
    "history": ([named("history"), Reply("fine")], ["history"]),
    "the newest": ([named("user")], []),
    "results": ([LIST, named("user"), Reply("fine")], ["results"]),
    "history before results": ([LIST, named("history"), Reply("fine")], ["history"]),
    "the reply": ([LIST, named("assistant")], []),
    "text of the task": ([named(text="and now or...later?")], []),
    "text of the history": ([LIST, named(text="say the fo...thing"), Reply("fine")], ["history"]),
    "text that is unknown": ([LIST, named(text="else"), named(), Reply("fine")], None),
}


@pytest.mark.parametrize(("script", "left_out"), NAMED.values(), ids=NAMED)
async def test_what_a_content_filter_names_is_left_out_and_nothing_else(
    home: Path, script: list[Reply], left_out: list[str] | None
) -> None:
    async with refusing(home, lambda _: "", [Reply("well"), *script]) as (server, here):
        first = await here.submit("say the forbidden thing")
        await here.end_of(first)
        last = await here.submit("and now or later?", first.session_id)
        events = await here.durable(last) if await here.end_of(last) else []
        told = [each["what"] for each in notes(events)]
        assert told == (["results", "history"] if left_out is None else left_out)
        assert events[-1]["payload"]["stop_reason"] == ("final_answer" if told else "error")
        assert server.count == 1 + len(script)
