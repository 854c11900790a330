"""One connection: start, calls, crashes, bounds and end, with a hostile server over stdio."""

import asyncio
import sys
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.react.input_forms import InputReply, InputResponse
from internal.mcp.elicitation import requires_input
from internal.mcp.limits import ServerFailure
from internal.mcp.manifest import ListedTool
from internal.mcp.server_messages import LOGGED_KEY
from tests import ROOT
from tests.support.mcp_connection import ignore, opened, text_of
from tests.support.mcp_servers import connection, hostile, until
from tests.support.native_sandbox import is_running


async def test_a_call_starts_the_server_and_reports_progress(tmp_path: Path) -> None:
    listed: list[list[ListedTool]] = []
    reports: list[tuple[float, float | None, str]] = []
    async with opened(hostile(tmp_path, "plain", on_tools=listed.append)) as server:
        assert server._owner is None
        result = await server.call("echo", {"text": "hi"}, lambda *each: reports.append(each))
        assert server.is_open
        await server.list_tools()
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert reports == [(1.0, 2.0, "half")]
    assert [each.name for each in listed[0]] == ["echo", "fail", "hang", "crash", "spawn"]
    assert len(listed) == 2
    assert not server.is_open


async def test_output_that_is_no_message_is_passed_over(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "prints")) as server:
        assert await text_of(server, text="hi") == "hi"


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("invalid byte", ["caf\ufffd"]),
        ("in lines", ["in lines"]),
        ("nulls", ["hi", "[A part of an unknown type, video]\na film"]),
        ("no members", ['{"pong": 4711}']),
    ],
)
@pytest.mark.first_rows(1)
async def test_an_untidy_answer_is_used(tmp_path: Path, answer: str, texts: list[str]) -> None:
    async with opened(hostile(tmp_path, "untidy")) as server:
        result = await server.call("echo", {"text": answer}, ignore)
    assert [part["text"] for part in result["content"]] == texts


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("damaged", "a message that cannot be read: {.*te$"),
        ("damaged without a number", "a message that cannot be read: {"),
        ("no text", "the server answered: no reason is known"),
        ("words", "nothing for 4 s; the outcome of the call is unknown: Error: no pong today"),
    ],
)
@pytest.mark.first_rows(1)
async def test_a_damaged_answer_ends_the_call_at_once(
    tmp_path: Path, answer: str, reason: str
) -> None:
    async with opened(hostile(tmp_path, "untidy", call_timeout_seconds=300)) as server:
        async with asyncio.timeout(60):
            with pytest.raises(ToolError, match=reason):
                await server.call("echo", {"text": answer}, ignore)
        assert server.is_open


async def test_a_timeout_names_what_was_written_instead_of_an_answer(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "prints", call_timeout_seconds=0.1)) as server:
        with pytest.raises(ToolError, match=r"0\.1 s; it wrote .* no message: {not json"):
            await text_of(server, "hang")


async def test_a_tool_that_cannot_be_used_costs_only_itself(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "untidy")) as server:
        listed = await server.list_tools()
    assert [(each.name, each.problem) for each in listed] == [
        ("echo", ""),
        ("odd", "has no schema of its arguments"),
        ("", "has no schema of its arguments"),
        ("bare", ""),
    ]
    assert listed[-1].schema == {"type": "object"}


@pytest.mark.slow
async def test_a_mute_server_fails_within_its_own_time(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "mute", start_timeout_seconds=3)) as server:
        with pytest.raises(
            ServerFailure, match=r"did not start in 3 s: starting on stderr"
        ) as found:
            await server.list_tools()
    assert "canary" not in str(found.value)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("exits", "it exited with 7: starting on stderr / Traceback: no token"),
        ("flood", "faster than they can be read|more than 100,000,000 bytes"),
        ("endless-line", "a message of more than 10,000,000 bytes"),
    ],
)
@pytest.mark.first_rows(1)
async def test_a_server_that_breaks_at_its_start_is_ended(
    tmp_path: Path, mode: str, reason: str
) -> None:
    async with opened(hostile(tmp_path, mode)) as server:
        with pytest.raises(ServerFailure, match=reason):
            await server.list_tools()


async def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    async with opened(connection(tmp_path, "no-such-program")) as server:
        with pytest.raises(ServerFailure, match="there is no program 'no-such-program'"):
            await server.list_tools()


async def test_a_flood_on_standard_error_is_read_and_dropped(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "stderr-flood")) as server:
        assert await text_of(server, text="hi") == "hi"


async def test_a_result_that_is_too_large_ends_the_server(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "large-result")) as server:
        with pytest.raises(ServerFailure, match="during the call: it sent a message of more than"):
            await text_of(server)


async def test_a_pattern_of_a_server_is_not_applied_to_its_results(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "bad-output-schema")) as server, asyncio.timeout(20):
        result = await server.call("echo", {}, ignore)
    assert result["structuredContent"] == {"x": "a" * 40 + "!"}


async def test_an_answer_after_the_timeout_is_dropped(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "late", call_timeout_seconds=0.05)) as server:
        with pytest.raises(ToolError, match=r"did not answer in 0\.05 s"):
            await text_of(server, text="one")
        with pytest.raises(ToolError, match="did not answer"):
            await text_of(server, text="two")
        assert server.is_open


async def test_stopping_a_call_tells_the_server_and_keeps_the_connection(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(hostile(tmp_path, "plain", state)) as server:
        call = asyncio.create_task(text_of(server, "hang"))
        await until(state.exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "cancelled" in state.read_text())
        assert await text_of(server, text="still here") == "still here"


async def test_a_change_of_the_tools_is_listed_at_once(tmp_path: Path) -> None:
    listed: list[list[ListedTool]] = []
    server = hostile(tmp_path, "changing", tmp_path / "state", on_tools=listed.append)
    async with opened(server):
        await text_of(server, "change")
        await until(lambda: len(listed) > 1)
    assert [each.name for each in listed[1]] == ["echo", "page"]


async def test_a_change_is_listed_at_once_in_the_newer_protocol(tmp_path: Path) -> None:
    listed: list[list[ListedTool]] = []
    server = connection(
        tmp_path,
        *(sys.executable, "-m", "tests.support.mcp_sdk_server", "stdio"),
        env={"PYTHONPATH": str(ROOT)},
        on_tools=listed.append,
    )
    async with opened(server):
        assert await text_of(server, "grow") == "grown"
        await until(lambda: len(listed) > 1)
    assert {each.name for each in listed[1]} - {each.name for each in listed[0]} == {"grown"}


async def test_errors_that_a_server_logs_belong_to_the_call(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "meant")) as server:
        result = await server.call("complain", {}, ignore)
        assert result[LOGGED_KEY] == ['{"disk": "full\\u001b[1m"}']
        assert LOGGED_KEY not in await server.call("search", {}, ignore)


async def test_a_crash_fails_the_call_and_the_next_one_starts_it_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(hostile(tmp_path, "counting", state)) as server:
        with pytest.raises(ServerFailure, match="ended during the call: it exited with 3"):
            await text_of(server, "crash")
        started = asyncio.get_running_loop().time()
        assert await text_of(server, text="again") == "again"
        assert asyncio.get_running_loop().time() - started > 0.3  # a pause after a failure
    assert state.read_text() == "started\nstarted\n"


async def test_the_processes_of_a_server_end_with_it(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "plain")) as server:
        closed = int(await text_of(server, "spawn"))
        assert is_running(closed)
    assert not is_running(closed)
    async with opened(hostile(tmp_path, "plain")) as server:
        crashed = int(await text_of(server, "spawn"))
        with pytest.raises(ServerFailure):
            await text_of(server, "crash")
        await until(lambda: not server.is_open)
        await until(lambda: not is_running(crashed))


async def test_an_idle_server_is_stopped_and_started_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(hostile(tmp_path, "counting", state, idle_seconds=0.05)) as server:
        await text_of(server)
        await until(lambda: not server.is_open)
        await text_of(server)
    assert state.read_text() == "started\nstarted\n"


async def test_a_server_is_not_idle_while_a_call_waits_for_people(tmp_path: Path) -> None:
    async with opened(hostile(tmp_path, "asking", idle_seconds=0.0)) as server:
        asked = await server.call("ask", {}, ignore, key="one")
        assert requires_input(asked)
        await asyncio.to_thread(int)  # the timer of an idle server would run
        assert server.is_open
        reply = InputReply((InputResponse("", "accept", {"name": "Ada"}),), None)
        result = await server.call("ask", {}, ignore, key="one", reply=reply)
        assert "Ada" in result["content"][0]["text"]
        await until(lambda: not server.is_open)


async def test_calls_that_come_together_share_one_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(hostile(tmp_path, "counting", state)) as server, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(text_of(server, text=str(n))) for n in range(10)]
    assert [call.result() for call in calls] == [str(n) for n in range(10)]
    assert state.read_text() == "started\n"


async def test_closing_does_not_wait_for_a_mute_server(tmp_path: Path) -> None:
    server = hostile(tmp_path, "mute")
    listing = asyncio.create_task(server.list_tools())
    await until(lambda: server._endpoint is not None and bool(server._endpoint.failure))
    async with asyncio.timeout(10):
        await server.close()
    with pytest.raises(ServerFailure, match="is being stopped"):
        await listing
