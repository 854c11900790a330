"""Runs through a real gateway with a scripted model: from the submission to the stream."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import Conflict, InvalidRequest, NotFound
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId, TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent, plan, sound
from tests.support.anthropic_server import Call, Fault, Reply, Rules, When


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in events if each["event"] == f"workflow.{name}"]


async def test_a_greeting_is_answered_without_a_plan(home: Path) -> None:
    async with open_agent(home, [Reply(text="Hello there", pieces=3)]) as here:
        made = await here.submit("hi")
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["final_answer"], final["stop_reason"]) == ("Hello there", "final_answer")
        stages = [each["node_id"] for each in named(events, "node.completed")]
        assert stages == ["prepare", "iter:1", "execute", "summarize", "persist"]
        run = await here.run(made)
        assert (run.status, run.answer) == ("completed", "Hello there")
        messages = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
        assert [row.message.role for row in messages] == ["assistant", "user"]
        session = await here.services.gateway.queries.session(made.session_id, LOCAL_OWNER)
        assert session.title == "hi"


async def test_the_plan_title_becomes_the_session_title_and_tools_run(home: Path) -> None:
    script = [
        Reply(calls=[plan("write", title="A note")]),
        Reply(calls=[Call("write_file", {"path": "note.md", "content": "lark\n"})]),
        Reply(calls=[Call("update_plan", {"step_id": "1", "status": "completed"})]),
        Reply(text="Done."),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("write a note")
        events = await here.end_of(made)
        sound(events)
        note = home / "workspaces" / made.session_id / "note.md"
        assert note.read_text() == "lark\n"
        plans = [each["payload"] for each in named(events, "plan.updated")]
        assert [each["steps"][0]["status"] for each in plans] == ["pending", "completed"]
        session = await here.services.gateway.queries.session(made.session_id, LOCAL_OWNER)
        assert session.title == "A note"


async def test_an_action_before_the_plan_is_rejected_with_a_correction(home: Path) -> None:
    touch = Call("shell", {"command": "touch ran"})
    script = [Reply(calls=[touch]), Reply(calls=[plan()]), Reply(calls=[touch]), Reply(text="ok")]
    async with open_agent(home, script) as here:
        made = await here.submit("touch it")
        events = await here.end_of(made)
        sound(events)
        assert len(named(events, "tool.started")) == 1
        assert "Call plan first" in named(events, "diagnostic.error")[0]["payload"]["error"]


async def test_tasks_of_a_session_run_in_order_and_sessions_run_concurrently(
    home: Path,
) -> None:
    rules = Rules(
        [
            Reply(text="one", hold="first", when=When(last_user="first")),
            Reply(text="two", when=When(last_user="second")),
            Reply(text="three", when=When(last_user="other")),
        ]
    )
    async with open_agent(home, rules) as here:
        first = await here.submit("first")
        second = await here.submit("second", first.session_id)
        await here.model.until_open(1)
        other = await here.submit("other")
        await here.end_of(other)  # while the first one is at work
        assert (await here.run(second)).status == "queued"
        here.model.release("first")
        events = await here.end_of(second)
        order = [each["run_id"] for each in events if each["event"] == "workflow.result.final"]
        assert order == [first.run_id, second.run_id]
        asked = [request["messages"] for request in here.model.requests]
        assert [message["role"] for message in asked[-1]] == ["user", "assistant", "user"]


async def test_eight_concurrent_tools_and_every_subscriber_receives_the_same_events(
    home: Path,
) -> None:
    calls = [Call("shell", {"command": f"echo {n}"}) for n in range(8)]
    script = [Reply(calls=[plan()]), Reply(calls=calls), Reply(text="eight")]
    async with open_agent(home, script) as here:
        made = await here.submit("run eight")
        views = [await task for task in [asyncio.create_task(here.end_of(made)) for _ in range(5)]]
        durable = [[each["event_id"] for each in view if "seq" in each] for view in views]
        assert all(view == durable[0] for view in durable)
        sound(views[0])
        results = here.model.requests[-1]["messages"][-1]["content"]
        assert [
            str(n) in result["content"][0]["text"]
            if isinstance(result["content"], list)
            else str(n) in result["content"]
            for n, result in enumerate(results)
        ] == [True] * 8


async def test_steering_is_delivered_before_the_next_model_call(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="blue it is", when=When(last_text="make it blue")),
            Reply(calls=[Call("list_dir", {})], when=When(all_results=1)),
            Reply(calls=[plan()], hold="start", when=When(all_results=0)),
            Reply(text="not steered", when=When(all_results=2)),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("paint it")
        await here.model.until_open(1)
        steered = await here.services.gateway.steer_task(
            made.task_id, "make it blue", LOCAL_OWNER, channel="web"
        )
        assert (steered.taken_as, steered.run_id) == ("steering", made.run_id)
        here.model.release("start")
        events = await here.end_of(made)
        sound(events)
        received = named(events, "input.received")
        assert [each["payload"].get("steer", False) for each in received] == [False, True]
        assert events[-1]["payload"]["final_answer"] == "blue it is"


async def test_late_steering_becomes_the_next_task(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="late words heard", when=When(last_user="too late")),
            Reply(text="first answer", hold="first", when=When(last_user="begin")),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("begin")
        await here.model.until_open(1)
        await here.services.gateway.steer_task(made.task_id, "too late", LOCAL_OWNER, channel="web")
        here.model.release("first")
        events = await here.until(
            made.session_id,
            lambda each: each["event"] == "workflow.result.final" and each["run_id"] != made.run_id,
        )
        answers = [each["payload"]["final_answer"] for each in named(events, "result.final")]
        assert answers == ["first answer", "late words heard"]


async def test_a_message_to_an_idle_session_is_a_task(home: Path) -> None:
    async with open_agent(home, [Reply(text="one"), Reply(text="two")]) as here:
        made = await here.submit("begin")
        await here.end_of(made)
        steered = await here.services.gateway.steer_task(
            made.task_id, "go on", LOCAL_OWNER, channel="cli"
        )
        assert steered.taken_as == "task"
        await here.until(
            made.session_id,
            lambda each: (
                each["event"] == "workflow.result.final" and each["run_id"] == steered.run_id
            ),
        )


@pytest.mark.parametrize(
    "reply",
    [Reply(hang=True), Reply(text="some words", pieces=4, after_pieces=2, hang=True)],
    ids=["before the first word", "in mid-reply"],
)
async def test_a_stop_interrupts_a_model_reply(home: Path, reply: Reply) -> None:
    async with open_agent(home, [reply]) as here:
        made = await here.submit("talk")
        await here.model.until_open(1)
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "running"
        events = await here.end_of(made)
        sound(events)
        cancelled = events[-1]
        assert cancelled["event"] == "workflow.result.cancelled"
        assert cancelled["payload"]["requested_via"] == "web"
        assert cancelled["payload"]["reason_code"] == "stopped"
        assert (await here.run(made)).status == "cancelled"
        with pytest.raises(Conflict, match="ended"):
            await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")


async def test_a_stop_interrupts_a_hanging_tool(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[Call("shell", {"command": "sleep 600"})])]
    async with open_agent(home, script) as here:
        made = await here.submit("sleep")
        await here.until(made.session_id, lambda each: each["event"] == "workflow.tool.started")
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "cli")
        events = await here.end_of(made)
        sound(events)
        assert "unknown" in named(events, "tool.completed")[-1]["payload"]["error"]


async def test_a_queued_task_is_stopped_and_its_session_continues(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="a", hold="go", when=When(last_user="first")),
            Reply(text="c", when=When(last_user="third")),
        ]
    )
    async with open_agent(home, rules) as here:
        first = await here.submit("first")
        second = await here.submit("second", first.session_id)
        third = await here.submit("third", first.session_id)
        assert await here.services.gateway.stop(second.task_id, LOCAL_OWNER, "web") == "cancelled"
        here.model.release("go")
        events = await here.end_of(third)
        sound([each for each in events if each["run_id"] == second.run_id])
        assert [each["run_id"] for each in named(events, "result.final")] == [
            first.run_id,
            third.run_id,
        ]


async def test_the_last_iteration_produces_a_final_answer(home: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        if request.get("tool_choice", {}).get("type") == "none":
            return Reply(text="that is all I found")
        return Reply(calls=[Call("list_dir", {})] if len(request["messages"]) > 1 else [plan()])

    async with open_agent(home, script) as here:
        made = await here.submit("loop", max_iterations=4)
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert (final["stop_reason"], final["final_answer"]) == (
            "max_iterations",
            "that is all I found",
        )
        assert (await here.run(made)).status == "completed"


async def test_empty_model_replies_end_the_run_with_a_message(home: Path) -> None:
    async with open_agent(home, [Reply(times=9)]) as here:
        made = await here.submit("say nothing")
        events = await here.end_of(made)
        sound(events)
        assert "3 empty replies" in events[-1]["payload"]["error"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault(kind="status", status=401), "ANTHROPIC_API_KEY"),
        (Fault(kind="status", status=529), "overloaded"),
        (Fault(kind="garbage"), ""),
        (Fault(kind="drop"), ""),
    ],
    ids=["wrong key", "overloaded", "garbage", "no answer"],
)
async def test_a_model_error_fails_the_run_with_its_message(
    home: Path, fault: Fault, sentence: str
) -> None:
    async with open_agent(home, [Reply(fault=fault, times=9)]) as here:
        made = await here.submit("try", people=False)
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert final["stop_reason"] == "error"
        assert sentence.lower() in final["error"].lower()
        assert "key-for-tests" not in str(events)


async def test_a_broken_model_reply_is_restarted(home: Path) -> None:
    script = [
        Reply(text="half of it", pieces=5, fault=Fault(kind="error_in_stream", after_pieces=2)),
        Reply(text="all of it", pieces=5),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("speak")
        await here.end_of(made)
        assert (await here.run(made)).answer == "all of it"


async def test_a_run_ends_at_its_time_limit(home: Path) -> None:
    async with open_agent(home, [Reply(hang=True)]) as here:
        made = await here.submit("wait", timeout_seconds=0.3)
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["stop_reason"] == "timeout"


async def test_a_run_ends_at_its_cost_limit(home: Path) -> None:
    prices = '{"claude-x": {"input": 1000000, "output": 1000000}}'
    async with open_agent(home, [Reply(calls=[plan()])], {"LARKSPUR_LLM__PRICES": prices}) as here:
        made = await here.submit("spend", max_cost=0.5)
        events = await here.end_of(made)
        sound(events)
        final = events[-1]["payload"]
        assert final["stop_reason"] == "budget_exceeded"
        assert final["cost"] > 0.5


async def test_a_run_without_options_has_a_cost_limit(home: Path) -> None:
    environ = {"LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 0, "output": 1000000}}'}
    reply = Reply(calls=[plan()], usage={"output_tokens": 6})
    async with open_agent(home, [reply], environ) as here:
        final = (await here.end_of(await here.submit("spend")))[-1]["payload"]
        assert (final["stop_reason"], final["cost"]) == ("budget_exceeded", 6.0)
        assert "agent.max_cost" in final["error"]


async def test_a_pause_frees_the_lane_and_the_answer_continues_the_same_run(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="between", when=When(last_user="meanwhile")),
            Reply(text="red, then", when=When(last_result="red")),
            Reply(calls=[Call("request_user", {"question": "which colour?"})]),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("paint", people=True)
        asked = await here.until(
            made.session_id, lambda each: each["event"] == "workflow.question.asked"
        )
        question = asked[-1]["payload"]
        await here.until(made.session_id, lambda each: each["payload"].get("status") == "waiting")
        other = await here.submit("meanwhile", made.session_id)
        await here.end_of(other)
        await here.answer(question["question_id"], "text", "red")
        with pytest.raises(Conflict, match=r"by you via web, .* UTC: text"):
            await here.answer(question["question_id"], "text", "blue")
        events = [each for each in await here.end_of(made) if each["run_id"] == made.run_id]
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "red, then"
        assert len(named(events, "node.started")) == len(
            {each["node_id"] for each in named(events, "node.started")}
        )


async def test_an_approval_survives_a_restart(home: Path) -> None:
    touch = Call("shell", {"command": "echo once >> ran"})
    rules = Rules(
        [
            Reply(text="ran it", when=When(all_results=2)),
            Reply(calls=[touch], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("run it", people=True, permission_mode="ask")
        asked = await here.until(
            made.session_id, lambda each: each["event"] == "workflow.question.asked"
        )
    payload = asked[-1]["payload"]
    assert payload["calls"][0]["what"] == "echo once >> ran"
    assert not (home / "workspaces" / made.session_id / "ran").exists()
    async with open_agent(home, rules) as here:
        await here.answer(payload["question_id"])
        sound(await here.end_of(made))
        assert (home / "workspaces" / made.session_id / "ran").read_text() == "once\n"


async def test_a_question_without_people_is_rejected(home: Path) -> None:
    touch = Call("shell", {"command": "touch ran"})
    script = [Reply(calls=[plan()]), Reply(calls=[touch]), Reply(text="could not")]
    async with open_agent(home, script) as here:
        made = await here.submit("touch", permission_mode="ask", approvals=False)
        events = await here.end_of(made)
        sound(events)
        refused = named(events, "tool.completed")[0]["payload"]
        assert refused["metadata"]["denied"] is True
        assert refused["metadata"]["rules"] == ["shell(touch ran)"]
        assert not (home / "workspaces" / made.session_id / "ran").exists()


async def test_stopping_a_waiting_run_closes_its_question(home: Path) -> None:
    script = [Reply(calls=[Call("request_user", {"question": "which?"})])]
    async with open_agent(home, script) as here:
        made = await here.submit("ask", people=True)
        await here.until(made.session_id, lambda each: each["payload"].get("status") == "waiting")
        assert await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web") == "cancelled"
        events = await here.end_of(made)
        sound(events)
        assert named(events, "question.answered")[0]["payload"]["decision"] == "reject"


async def test_a_handed_over_run_continues_in_another_process(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="went on", when=When(last_result="unknown")),
            Reply(
                calls=[Call("shell", {"command": "echo x >> ran; sleep 600"})],
                when=When(all_results=1),
            ),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, rules) as here:
        made = await here.submit("long work")
        await here.until(
            made.session_id,
            lambda each: each["event"] == "workflow.tool.started",
        )
    async with open_agent(home, rules) as here:
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "went on"
        failed = [each["node_id"] for each in named(events, "node.failed")]
        assert "execute" in failed


async def test_a_small_context_window_omits_old_exchanges(home: Path) -> None:
    def script(request: dict[str, Any]) -> Reply:
        if len(here.model.requests) > 8:
            return Reply(text="enough")
        if len(here.model.requests) == 1:
            return Reply(calls=[plan()])
        return Reply(calls=[Call("read_file", {"path": "big.txt"})])

    environ = {
        "LARKSPUR_LLM__CONTEXT_WINDOW": "30000",
        "LARKSPUR_LLM__MAX_OUTPUT_TOKENS": "1000",
    }
    async with open_agent(home, script, environ) as here:
        workspace = home.parent / "work"
        workspace.mkdir()
        (workspace / "big.txt").write_text("a line of text\n" * 1500)
        made = await here.submit("read it all", workspace=str(workspace))
        events = await here.end_of(made)
        sound(events)
        left_out = named(events, "diagnostic.context_compression")
        assert left_out
        assert left_out[0]["payload"]["tokens_after"] < left_out[0]["payload"]["tokens_before"]
        assert events[-1]["payload"]["final_answer"] == "enough"


async def test_a_request_that_is_too_long_is_retried_with_less_context(home: Path) -> None:
    too_long = Fault(
        kind="status",
        status=400,
        error="invalid_request_error",
        message="prompt is too long: 300000 tokens > 200000 maximum",
    )
    read = Call("list_dir", {})
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[read]),
        Reply(calls=[read]),
        Reply(fault=too_long),
        Reply(text="fits now"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("a lot")
        events = await here.end_of(made)
        sound(events)
        compression = named(events, "diagnostic.context_compression")
        assert [each["payload"]["reason"] for each in compression] == ["provider_refused"]


async def test_invalid_requests_are_rejected_with_a_message(home: Path) -> None:
    async with open_agent(home, []) as here:
        with pytest.raises(InvalidRequest, match="empty"):
            await here.submit("  \n")
        with pytest.raises(InvalidRequest, match="200,001 characters"):
            await here.submit("x" * 200_001)
        with pytest.raises(NotFound, match="no session"):
            await here.submit("hi", SessionId("session-none"))
        with pytest.raises(NotFound, match="no task"):
            await here.services.gateway.stop(TaskId("task-none"), LOCAL_OWNER, "web")
        with pytest.raises(NotFound, match="no question"):
            await here.answer("question-none")
        with pytest.raises(InvalidRequest, match="price"):
            await here.submit("hi", max_cost=1.0)


async def test_a_run_without_tools_creates_no_folder(home: Path, tmp_path: Path) -> None:
    look = Reply(calls=[Call("list_dir", {"path": "."})])
    script = [Reply(text="hi"), Reply(text="hi"), Reply(calls=[plan()]), look, Reply(text="empty")]
    async with open_agent(home, script) as here:
        made = await here.submit("hi")
        await here.end_of(made)
        await here.end_of(await here.submit("hi", workspace=str(tmp_path)))
        assert not (home / "workspaces").exists()
        assert not (home / "session-files").exists()
        events = await here.end_of(await here.submit("look", made.session_id))
        assert events[-1]["payload"]["stop_reason"] == "final_answer"
        assert (home / "workspaces" / made.session_id / "output").is_dir()


async def test_a_workspace_that_is_gone_by_then_fails_the_run(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    async with open_agent(home, [Reply("done", hold="go"), Reply("done")]) as here:
        made = await here.submit("work", workspace=str(folder))
        await here.model.until_open(1)
        later = await here.submit("go on", made.session_id, workspace=str(folder))
        folder.rmdir()
        here.model.release("go")
        await here.end_of(made)
        events = await here.end_of(later)
        assert events[-1]["payload"]["stop_reason"] == "error"
        assert "is not a folder" in events[-1]["payload"]["error"]


async def test_timestamps_are_the_times_of_the_events(home: Path) -> None:
    async with open_agent(home, [Reply(text="hi")]) as here:
        before = rfc3339(here.services.clock.now())
        made = await here.submit("hi")
        events = await here.end_of(made)
        moments = [each["timestamp"] for each in events if "seq" in each]
        assert moments == sorted(moments)
        assert before <= moments[0] <= moments[-1] <= rfc3339(here.services.clock.now())
