"""Memory of a run about the earlier runs of its session."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submission
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.config.loader import load
from larkspur.services import TerminalServices, open_terminal
from tests.support.agent_app import open_agent, plain_gateway
from tests.support.agent_tasks import beside
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When, seen_in

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


async def test_overlapping_runs_with_the_same_call_ids_leave_a_valid_session(home: Path) -> None:
    repeated = "call_1"
    look = Call("list_dir", {}, id=repeated)
    ask = Call("request_user", {"question": "Which pond?"}, id=repeated)
    rules = Rules(
        [
            Reply(text="The north one.", when=When(last_user="ask", results=3)),
            Reply(calls=[look, look], when=When(last_user="ask", last_result="North")),
            Reply(calls=[ask], when=When(last_user="ask")),
            Reply(text="It is empty.", when=When(last_user="look", results=1)),
            Reply(calls=[look], when=When(last_user="look")),
            Reply(text="Both.", when=When(last_user="both?")),
        ]
    )
    async with open_agent(home, rules, NO_GATES) as here:
        waiting = await here.submit("ask")
        question = await here.asked(waiting)
        other = await here.submit("look", waiting.session_id)
        await here.end_of(other)
        await here.answer(question["question_id"], "text", "North")
        await here.end_of(waiting)
        last = await here.submit("both?", waiting.session_id)
        ended = (await here.end_of(last))[-1]["payload"]
        assert (ended["stop_reason"], ended["final_answer"]) == ("final_answer", "Both.")
        sent = [
            block["id"]
            for message in here.model.requests[-1]["messages"]
            if not isinstance(message["content"], str)
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        assert len(sent) == len(set(sent)) == 4


def texts(request: dict[str, Any], role: str) -> list[str]:
    """Return the texts of a role in a request, without tool results."""
    return [
        block["text"]
        for message in request["messages"]
        if message["role"] == role
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
        if block["type"] == "text"
    ]


def results(request: dict[str, Any]) -> int:
    """Return how many tool results a request has after its last task."""
    return seen_in(request).results


async def run_in_terminal(terminal: TerminalServices, text: str, session: SessionId) -> None:
    """Run a task of a session in the process of a terminal."""
    spec = build_run_spec(terminal.defaults, TaskOptions(), LOCAL_OWNER)
    owner, lease = terminal.leases.owner, terminal.leases.expiry()
    submission = Submission(text, spec, "cli", session, owner=owner, lease_until=lease)
    made = await plain_gateway(terminal).submit(submission, LOCAL_OWNER)
    await terminal.dispatcher.execute(made.run_id, terminal.coordinator)


async def test_two_processes_remember_what_each_other_did_in_a_session(home: Path) -> None:
    async with (
        open_agent(home, Rules([Reply(text="Noted.")])) as here,
        open_terminal(load(environ=beside(here, home))) as terminal,
    ):
        session = (made := await here.submit("task 0")).session_id
        await here.end_of(made)
        for number in range(1, 9):
            if number % 4 in {1, 2}:
                await run_in_terminal(terminal, f"task {number}", session)
            else:
                await here.end_of(await here.submit(f"task {number}", session))
            request = here.model.requests[-1]
            assert texts(request, "user") == [f"task {each}" for each in range(number + 1)]
            assert texts(request, "assistant") == ["Noted."] * number


async def test_a_run_of_twelve_file_reads_is_remembered(home: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        if "How many" in texts(request, "user")[-1]:
            return Reply(text="There were twelve files.")
        read = results(request)
        if read == 12:
            return Reply(text="I have read all twelve files.")
        return Reply(calls=[Call("read_file", {"path": f"{read}.txt"})])

    workspace = home.parent / "work"
    workspace.mkdir()
    for number in range(12):
        (workspace / f"{number}.txt").write_text(f"line of file {number}\n" * 2000)
    environ = {
        **NO_GATES,
        "LARKSPUR_LLM__CONTEXT_WINDOW": "200000",
        "LARKSPUR_LLM__MAX_OUTPUT_TOKENS": "8192",
    }
    async with open_agent(home, script, environ) as here:
        made = await here.submit("Read the files.", workspace=str(workspace))
        await here.end_of(made)
        again = await here.submit("How many were they?", made.session_id, workspace=str(workspace))
        await here.end_of(again)
        request = here.model.requests[-1]
        assert texts(request, "user") == ["Read the files.", "How many were they?"]
        assert texts(request, "assistant") == ["I have read all twelve files."]
        shown = str(request["messages"])
        assert "line of file 11" in shown, "the newest exchanges stay"
        assert len(shown) < 3 * 100_000


@pytest.mark.slow
async def test_a_run_of_many_small_calls_is_remembered(home: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        if "How many" in texts(request, "user")[-1]:
            return Reply(text="105.")
        if results(request) == 105:
            return Reply(text="I have looked 105 times.")
        same = results(request) + 1  # equal calls in a row end a run
        return Reply(calls=[Call("list_dir", {"path": "./" * same})])

    async with open_agent(home, script, NO_GATES) as here:
        made = await here.submit("Look often.", max_iterations=200)
        await here.end_of(made)
        await here.end_of(await here.submit("How many times?", made.session_id))
        request = here.model.requests[-1]
        assert texts(request, "user") == ["Look often.", "How many times?"]
        assert texts(request, "assistant") == ["I have looked 105 times."]
        assert len(request["messages"]) == 2 * 105 + 3


async def test_the_last_question_and_answer_are_shortened_but_never_left_out(home: Path) -> None:
    too_long = Fault(kind="status", status=400, message="prompt is too long: 9 tokens > 8 maximum")
    script = [
        Reply(text=f"The answer begins. {'a' * 300_000} The answer ends."),
        Reply(fault=too_long),
        Reply(text="Thank you."),
    ]
    environ = {
        "LARKSPUR_LLM__CONTEXT_WINDOW": "100000",
        "LARKSPUR_LLM__MAX_OUTPUT_TOKENS": "1000",
    }
    async with open_agent(home, script, environ) as here:
        question = f"The question begins. {'q' * 100_000} The question ends."
        made = await here.submit(question)
        await here.end_of(made)
        ended = (await here.end_of(await here.submit("And now?", made.session_id)))[-1]
        assert ended["payload"]["final_answer"] == "Thank you."
        sizes = []
        for request in here.model.requests[1:]:
            shown = "".join(str(message["content"]) for message in request["messages"])
            sizes.append(len(shown))
            for words in ("question begins", "question ends", "answer begins", "answer ends"):
                assert f"The {words}." in shown
        assert sizes[1] < sizes[0] < 10_000


@pytest.mark.slow
async def test_the_requests_of_a_long_session_begin_with_the_same_messages(home: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        if results(request) == 0:
            return Reply(calls=[Call("list_dir", {})])
        return Reply(text=f"Answer: {'a' * 900}")

    environ = {
        **NO_GATES,
        "LARKSPUR_LLM__CONTEXT_WINDOW": "28000",
        "LARKSPUR_LLM__MAX_OUTPUT_TOKENS": "1000",
    }
    async with open_agent(home, script, environ) as here:
        made = await here.submit("Question 0")
        await here.end_of(made)
        for number in range(1, 60):
            again = await here.submit(f"Question {number} {'q' * 900}", made.session_id)
            await here.end_of(again)
        firsts = [
            [str(message).replace(", 'cache_control': {'type': 'ephemeral'}", "") for message in r]
            for r in (request["messages"] for request in here.model.requests[::2])
        ]
    assert len(firsts) == 60
    assert len(firsts[-1]) < len(firsts[20]) * 2, "old messages are left out"
    pairs = list(pairwise(firsts[20:]))
    same = [after[: len(before) - 1] == before[:-1] for before, after in pairs]
    assert sum(same) > len(pairs) / 2
