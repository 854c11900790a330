"""Questions and answers through a real gateway."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submission
from internal.agent.app.runs.questions import Actor
from internal.agent.app.task_commands import RecallRequest
from internal.agent.domain.answers import AnswerInput
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LarkspurError,
    NotFound,
)
from internal.agent.domain.ids import QuestionId
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Channel
from tests.support.agent_app import Core, open_agent, plan, sound
from tests.support.agent_tasks import late_sweep
from tests.support.anthropic_server import Call, Reply, Rules, When

OPERATOR = Principal("lark:app:ou_op", "Olga", frozenset({"talk", "operate"}))
TALKER = Principal("lark:app:ou_1", "Tom", frozenset({"talk"}))
CHAT = "lark:app:oc_1"


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == f"workflow.{name}"]


def touch(name: str) -> Call:
    return Call("shell", {"command": f"touch {name}"})


def reviewed(*replies: Reply) -> Rules:
    """A model that plans `look` and `act`, revises its plan, and creates `acted` after approval."""
    return Rules(
        [
            *replies,
            Reply(text="done", when=When(last_result="exit code 0")),
            Reply(calls=[touch("acted")], when=When(last_result="agrees to")),
            Reply(calls=[plan("look", "wash", "act")], when=When(last_result="plan_feedback")),
            Reply(text="Nobody agreed.", when=When(last_text="Nobody agreed to your plan")),
            Reply(calls=[plan("look", "act")]),
        ]
    )


def acted(here: Core, home: Path, session: str) -> bool:
    return (home / "workspaces" / session / "acted").exists()


async def test_nothing_runs_before_the_plan_is_approved(home: Path) -> None:
    async with open_agent(home, reviewed()) as here:
        made = await here.submit("act", plan_review="always")
        asked = await here.asked(made)
        assert asked["kind"] == "plan"
        assert [step["description"] for step in asked["plan"]["steps"]] == ["look", "act"]
        assert not acted(here, home, made.session_id)

        await here.answer(asked["question_id"])

        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "done"
        assert acted(here, home, made.session_id)
        (answered,) = named(events, "question.answered")
        assert (answered["decision"], answered["answered_by"]) == ("approve", "local")


async def test_feedback_creates_a_new_plan_version_and_a_new_question_in_the_same_run(
    home: Path,
) -> None:
    async with open_agent(home, reviewed()) as here:
        made = await here.submit("act", plan_review="always")
        first = await here.asked(made)
        await here.answer(first["question_id"], "text", "wash your hands first")
        second = await here.asked(made, 2)
        assert second["question_id"] != first["question_id"]
        assert [step["description"] for step in second["plan"]["steps"]] == ["look", "wash", "act"]
        block = here.model.requests[1]["messages"][-1]["content"][0]["content"]
        assert "<plan_feedback>" in str(block)
        assert "<user_feedback>wash your hands first</user_feedback>" in str(block)
        assert not acted(here, home, made.session_id)

        edit = {"steps": ["look", "act"], "goal": "only look and act"}
        await here.answer(second["question_id"], "edit", edit=edit)
        third = await here.asked(made, 3)
        assert third["plan"]["version"] == 3
        assert len(here.model.requests) == 2, "the model is not asked about a person's edit"
        assert not acted(here, home, made.session_id)
        await here.answer(third["question_id"], edit={"steps": ["act"]})

        events = await here.end_of(made)
        sound(events)
        assert {each["run_id"] for each in events} == {made.run_id}
        assert [each["version"] for each in named(events, "plan.updated")] == [1, 2, 3, 4]
        assert named(events, "plan.updated")[-1]["goal"] == "only look and act"
        result = here.model.requests[2]["messages"][-1]["content"][0]["content"]
        assert "The person agrees to plan 4: only look and act" in str(result)
        assert acted(here, home, made.session_id)


async def test_a_rejected_plan_ends_the_run_without_a_tool_call(home: Path) -> None:
    async with open_agent(home, reviewed()) as here:
        made = await here.submit("act", plan_review="always")
        asked = await here.asked(made)
        await here.answer(asked["question_id"], "reject", "too risky")
        events = await here.end_of(made)
        sound(events)
        last = events[-1]
        assert last["event"] == "workflow.result.cancelled"
        stop = {"reason": "too risky", "requested_by": "local", "requested_via": "web"}
        assert last["payload"].items() >= stop.items()
        assert named(events, "tool.started") == []
        run = await here.run(made)
        assert (run.status, run.stop_reason) == ("cancelled", "rejected")
        assert len(here.model.requests) == 1


async def test_an_expired_plan_question_rejects_the_plan_with_a_final_answer(home: Path) -> None:
    async with open_agent(home, reviewed()) as here:
        made = await here.submit("act", plan_review="always")
        asked = await here.asked(made)
        assert await late_sweep(here).expire_questions() == 1
        here.services.dispatcher.wake()
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["event"] == "workflow.result.cancelled"
        assert events[-1]["payload"]["requested_by"] == "nobody"
        run = await here.run(made)
        assert (run.stop_reason, run.answer) == ("rejected", "Nobody agreed.")
        assert not acted(here, home, made.session_id)
        with pytest.raises(Conflict, match="has expired; nothing was run"):
            await here.answer(asked["question_id"])


async def test_plan_review_can_be_limited_to_complex_plans(home: Path) -> None:
    simple = Rules(
        [
            Reply(text="done", when=When(all_results=2)),
            Reply(calls=[touch("acted")], when=When(all_results=1)),
            Reply(calls=[plan("act")]),
        ]
    )
    async with open_agent(home, simple) as here:
        made = await here.submit("act", plan_review="complex")
        events = await here.end_of(made)
        assert named(events, "question.asked") == []
    hard = Rules([Reply(calls=[plan("look", "act", complexity="complex")])])
    async with open_agent(home, hard) as here:
        made = await here.submit("act", plan_review="complex")
        assert (await here.asked(made))["kind"] == "plan"


async def test_no_action_runs_before_the_plan_is_approved_in_any_gate_mode(
    home: Path,
) -> None:
    script = Rules(
        [
            Reply(text="gave up", when=When(all_results=3)),
            Reply(calls=[touch("acted")]),
        ]
    )
    async with open_agent(home, script, {"LARKSPUR_AGENT__GATES": "off"}) as here:
        made = await here.submit("act", plan_review="always")
        events = await here.end_of(made)
        assert "a person must agree to the plan" in named(events, "tool.completed")[0]["error"]
        assert not acted(here, home, made.session_id)


async def test_a_task_with_an_image_skips_the_plan_review(home: Path) -> None:
    script = Rules([Reply(text="a heron")])
    async with open_agent(home, script, {"LARKSPUR_AGENT__PLAN_REVIEW": "always"}) as here:
        seen = await here.services.attachments.put("bird.png", "image/png", b"\x89PNG")
        made = await here.submit("what is it?", attachments=(seen,))
        events = await here.end_of(made)
        assert named(events, "question.asked") == []
        assert events[-1]["payload"]["final_answer"] == "a heron"


def two_calls() -> Rules:
    return Rules(
        [
            Reply(text="done", when=When(all_results=3)),
            Reply(calls=[touch("a"), touch("b")], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )


async def test_calls_are_approved_one_by_one_and_denials_reach_the_model(home: Path) -> None:
    async with open_agent(home, two_calls()) as here:
        made = await here.submit("touch", permission_mode="ask")
        asked = await here.asked(made)
        first, second = asked["calls"]
        assert [first["what"], second["what"]] == ["touch a", "touch b"]
        await here.answer(
            asked["question_id"], "approve", "b is not ours", items={second["call_id"]: False}
        )
        events = await here.end_of(made)
        sound(events)
        folder = home / "workspaces" / made.session_id
        assert (folder / "a").exists()
        assert not (folder / "b").exists()
        denied = next(each for each in named(events, "tool.completed") if "error" in each)
        assert denied["error"] == "Not run: the owner said no: b is not ours."
        assert events[-1]["payload"]["final_answer"] == "done"


async def test_an_approval_question_contains_the_diff_of_an_edit(home: Path) -> None:
    change = Call("write_file", {"path": "notes.md", "content": "one\nthree\n"})
    script = Rules(
        [
            Reply(text="done", when=When(all_results=2)),
            Reply(calls=[change], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, script) as here:
        folder = home.parent / "work"
        folder.mkdir()
        (folder / "notes.md").write_text("one\ntwo\n")
        made = await here.submit("write", permission_mode="ask", workspace=str(folder))
        asked = await here.asked(made)
        assert "-two\n+three" in asked["calls"][0]["diff"]
        await here.answer(asked["question_id"])
        await here.end_of(made)
        assert (folder / "notes.md").read_text() == "one\nthree\n"


async def test_calls_that_would_fail_or_change_nothing_are_not_asked_about(home: Path) -> None:
    missing = Call("edit_file", {"path": "none", "old_string": "a", "new_string": "b"})
    same = Call("write_file", {"path": "kept", "content": "kept"})
    unfit = Call("shell", {"command": "true", "folder": "x"})
    script = [
        Reply(calls=[plan()]),
        Reply(calls=[Call("write_file", {"path": "kept", "content": "kept"})]),
        Reply(calls=[missing, same, unfit]),
        Reply(calls=[missing, touch("made")]),
        Reply(text="done"),
    ]
    async with open_agent(home, script) as here:
        made = await here.submit("try", permission_mode="ask")
        await here.answer((await here.asked(made))["question_id"])
        asked = await here.asked(made, 2)
        # the second reply got its errors at once, the third is asked about one of its calls
        assert [call["what"] for call in asked["calls"]] == ["touch made"]
        assert asked["title"] == "Run `touch made`?"
        await here.answer(asked["question_id"])

        events = await here.end_of(made)
        sound(events)
        errors = [each["error"] for each in named(events, "tool.completed") if "error" in each]
        assert len(errors) == 4
        assert "none does not exist" in errors[0]
        assert "kept has exactly this content already" in errors[1]
        assert "shell has no argument" in errors[2]
        assert len(named(events, "question.asked")) == 2
        assert len(named(events, "tool.started")) == len(named(events, "tool.completed"))
        assert acted(here, home, made.session_id) is False
        assert (home / "workspaces" / made.session_id / "made").exists()


def again(command: str) -> Rules:
    """A model that runs a command for each user message."""
    return Rules(
        [
            Reply(text="done", when=When(results=2)),
            Reply(calls=[Call("shell", {"command": command})], when=When(results=1)),
            Reply(calls=[plan()]),
        ]
    )


@pytest.mark.parametrize(("grant", "asked_in_other"), [("session", True), ("rule", False)])
async def test_a_lasting_approval_adds_a_rule_for_the_session_or_the_person(
    home: Path, grant: str, *, asked_in_other: bool
) -> None:
    async with open_agent(home, again("touch a")) as here:
        made = await here.submit("once", permission_mode="ask")
        asked = await here.asked(made)
        assert asked["calls"][0]["rules"] == ["shell(touch a)"]
        await here.answer(asked["question_id"], grant=grant)
        await here.end_of(made)

        same = await here.submit("twice", made.session_id, permission_mode="ask")
        assert named(await here.end_of(same), "question.asked")[1:] == []

        other = await here.submit("elsewhere", permission_mode="ask")
        events = await here.until(
            other.session_id,
            lambda each: (
                each["payload"].get("status") == "waiting"
                or each["event"] == "workflow.result.final"
            ),
        )
        assert bool(named(events, "question.asked")) is asked_in_other
        entries = await here.services.gateway.queries.audit_entries(LOCAL_OWNER)
        assert ("rule.written", "shell(touch a)") in [
            (each.action, each.detail) for each in entries
        ]


async def test_after_a_rule_is_removed_the_call_needs_approval_again(home: Path) -> None:
    async with open_agent(home, again("touch a")) as here:
        gateway = here.services.gateway
        made = await here.submit("once", permission_mode="ask")
        await here.answer((await here.asked(made))["question_id"], grant="rule")
        await here.end_of(made)
        (rule,) = await gateway.queries.rules(LOCAL_OWNER)
        assert rule.scope == "principal:local"
        with pytest.raises(NotFound, match=f"no rule {rule.number}"):
            await gateway.remove_rule(rule.number, OPERATOR, "web")
        await gateway.remove_rule(rule.number, LOCAL_OWNER, "web")
        with pytest.raises(NotFound):
            await gateway.remove_rule(rule.number, LOCAL_OWNER, "web")
        next_one = await here.submit("again", permission_mode="ask")
        assert (await here.asked(next_one))["calls"][0]["what"] == "touch a"


async def test_no_rule_is_offered_for_commands_that_run_other_commands(home: Path) -> None:
    async with open_agent(home, again("sh -c 'touch a'")) as here:
        made = await here.submit("once", permission_mode="ask")
        asked = await here.asked(made)
        assert asked["calls"][0]["rules"] == []
        with pytest.raises(InvalidRequest, match="once only"):
            await here.answer(asked["question_id"], grant="session")
        with pytest.raises(InvalidRequest, match="runs any"):
            await here.answer(asked["question_id"], grant="rule", rules=["shell(sh *)"])
        assert await here.services.gateway.queries.questions(LOCAL_OWNER) != []


async def from_chat(
    here: Core, text: str, name: str, *, direct: bool = False, principal: Principal = TALKER,
    verb: str = "submit", **options: Any,
) -> Any:  # fmt: skip
    """Submit a chat message, as a chat channel does."""
    from internal.agent.app.task_options import TaskOptions, build_run_spec  # noqa: PLC0415 - beside its use

    message = InboundMessage(
        "lark", "app", name, "oc_1", principal.id, "{}", "2026-01-31T08:00:00.000Z"
    )
    await asyncio.wrap_future(here.services.gateway.delivery.accept(message))
    spec = build_run_spec(here.services.defaults, TaskOptions(**options), principal)
    submission = Submission(text, spec, "lark", scope="s", message=message, direct=direct)
    return await getattr(here.services.gateway, verb)(submission, principal)


def ask_once() -> Rules:
    return Rules(
        [
            Reply(text="thank you", when=When(last_result="green")),
            Reply(
                calls=[Call("request_user", {"question": "which?", "options": ["red", "green"]})]
            ),
        ]
    )


@pytest.mark.parametrize(
    ("who", "chat", "direct", "error"),
    [
        (TALKER, CHAT, False, Forbidden),
        (TALKER, CHAT, True, None),
        (OPERATOR, CHAT, False, None),
        (OPERATOR, "lark:app:oc_2", False, NotFound),
        (Principal("lark:app:ou_2", roles=frozenset({"talk"})), CHAT, True, Forbidden),
        (Principal("lark:app:ou_2", roles=frozenset({"talk"})), "", True, NotFound),
        (LOCAL_OWNER, "", False, None),
    ],
)
async def test_only_permitted_people_answer_a_question_of_a_chat(
    home: Path, who: Principal, chat: str, *, direct: bool, error: type[Exception] | None
) -> None:
    async with open_agent(home, ask_once()) as here:
        made = await from_chat(here, "paint", "m1", direct=direct)
        asked = await here.asked(made)
        assert asked["who"] == ("asker" if direct else "operators")
        answer = here.services.gateway.answer(
            QuestionId(asked["question_id"]),
            AnswerInput("text", choices=(2,)),
            Actor(who, "lark", chat),
        )
        if error is None:
            assert (await answer).answer is not None
            events = await here.end_of(made)
            assert events[-1]["payload"]["final_answer"] == "thank you"
        else:
            with pytest.raises(error):
                await answer
            assert (await here.run(made)).status == "waiting"
        entries = await here.services.gateway.queries.audit_entries(LOCAL_OWNER)
        refused = [each for each in entries if each.action == "question.refused"]
        assert [each.principal for each in refused] == ([who.id] if error is Forbidden else [])


async def test_a_question_and_its_closing_are_queued_for_the_chat(home: Path) -> None:
    async with open_agent(home, ask_once()) as here:
        made = await from_chat(here, "paint", "m1")
        asked = await here.asked(made)
        due = partial(here.services.stores.outbox.list_due, "lark", "app", now="9999", limit=10)
        (first,) = await here.services.database.read(due)
        assert first.outgoing.key == f"{asked['question_id']}:asked"
        assert first.outgoing.question_id == asked["question_id"]
        await here.services.database.write(
            partial(here.services.stores.outbox.mark_sent, first.number, "om_1", "2026")
        )
        await here.answer(asked["question_id"], "text", "green")
        await here.end_of(made)
        (second,) = await here.services.database.read(due)
        assert second.outgoing.key == f"{asked['question_id']}:closed"
        remote = partial(here.services.stores.outbox.get_remote_id, first.outgoing.key)
        assert await here.services.database.read(remote) == "om_1"


async def test_of_two_hundred_concurrent_answers_exactly_one_is_accepted(home: Path) -> None:
    async with open_agent(home, ask_once()) as here:
        made = await from_chat(here, "paint", "m1")
        asked = await here.asked(made)
        channels: list[tuple[Channel, Principal]] = [
            ("lark", OPERATOR), ("web", LOCAL_OWNER), ("cli", LOCAL_OWNER),
        ]  # fmt: skip

        async def answer(number: int) -> str:
            via, who = channels[number % 3]
            given = AnswerInput("text", "green" if number % 2 else "green!")
            try:
                await here.services.gateway.answer(
                    QuestionId(asked["question_id"]), given, Actor(who, via, CHAT)
                )
            except LarkspurError as error:
                return str(error)
            return "counts"

        async with asyncio.TaskGroup() as tasks:
            said = [tasks.create_task(answer(number)) for number in range(200)]
        results = [each.result() for each in said]
        assert results.count("counts") == 1
        assert sum(each.startswith("Already answered by ") for each in results) == 199
        events = await here.end_of(made)
        sound(events)
        assert len(named(events, "question.answered")) == 1


async def test_a_session_can_have_two_open_questions(home: Path) -> None:
    async with open_agent(home, ask_once()) as here:
        one = await from_chat(here, "paint the door", "m1")
        first = await here.asked(one)
        two = await from_chat(here, "paint the wall", "m2")
        second = await here.asked(two)
        open_ones = await here.services.gateway.queries.open_questions(CHAT)
        assert [each.question.id for each in open_ones] == [
            first["question_id"], second["question_id"],
        ]  # fmt: skip
        await here.answer(second["question_id"], "text", "green")
        await here.end_of(two)
        assert (await here.run(one)).status == "waiting"
        await here.answer(first["question_id"], "text", "green")
        await here.end_of(one)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"decision": "text", "text": "  "}, "The answer is empty"),
        ({"decision": "text", "choices": [3]}, "no option 3"),
        ({"decision": "text", "choices": [1, 2]}, "Choose one option"),
        ({"decision": "edit", "edit": {"steps": ["x"]}}, "edit has no meaning for a question"),
        ({"decision": "approve", "grant": "rule"}, "no meaning for a question"),
        ({"decision": "approve", "items": {"x": True}}, "no meaning for a question"),
    ],
)
async def test_an_invalid_answer_changes_nothing(
    home: Path, given: dict[str, Any], sentence: str
) -> None:
    async with open_agent(home, ask_once()) as here:
        made = await here.submit("paint")
        asked = await here.asked(made)
        with pytest.raises(InvalidRequest, match=sentence):
            await here.answer(asked["question_id"], **given)
        assert (await here.run(made)).status == "waiting"
        await here.answer(asked["question_id"], "text", choices=[2])
        await here.end_of(made)


async def test_the_message_of_an_answer_is_marked_as_handled(home: Path) -> None:
    async with open_agent(home, ask_once()) as here:
        gateway = here.services.gateway
        made = await from_chat(here, "paint", "m1")
        question = QuestionId((await here.asked(made))["question_id"])
        reply = InboundMessage(
            "lark", "app", "m2", "oc_1", OPERATOR.id, "{}", "2026-01-31T08:00:00.000Z"
        )
        await asyncio.wrap_future(gateway.delivery.accept(reply))
        answerer = Actor(OPERATOR, "lark", CHAT)
        with pytest.raises(InvalidRequest):
            await gateway.answer(question, AnswerInput("text"), answerer, reply)
        await gateway.answer(question, AnswerInput("text", "green"), answerer, reply)
        accepted = partial(here.services.stores.inbox.list_accepted, "lark", "app", 10)
        assert await here.services.database.read(accepted) == []
        await here.end_of(made)


async def test_an_interruption_stops_the_run_and_moves_its_unread_steering(home: Path) -> None:
    slow = Rules(
        [
            Reply(text="new", when=When(last_user="no, the wall")),
            Reply(text="never", when=When(all_results=2)),
            Reply(calls=[Call("shell", {"command": "sleep 600"})], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, slow, {"LARKSPUR_TOOLS__ALLOW": '["shell"]'}) as here:
        made = await from_chat(here, "paint the door", "m1")
        await here.until(made.session_id, lambda each: each["event"] == "workflow.tool.started")
        steered = await from_chat(here, "in green", "m2", verb="steer")
        assert steered.taken_as == "steering"
        second = await from_chat(here, "no, the wall", "m3", verb="interrupt")
        events = await here.end_of(second)
        cancelled = [each for each in events if each["event"] == "workflow.result.cancelled"]
        assert [each["run_id"] for each in cancelled] == [made.run_id]
        assert cancelled[0]["payload"]["reason"] == "interrupted by a new message"
        task = await here.services.gateway.queries.task(second.task_id, LOCAL_OWNER)
        assert task.instruction == "in green\n\nno, the wall"


async def test_a_message_after_a_stop_is_the_next_task(home: Path) -> None:
    slow = Rules(
        [
            Reply(text="hello again", when=When(last_user="are you there?")),
            Reply(calls=[Call("shell", {"command": "sleep 600"})], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, slow) as here:
        gateway = here.services.gateway
        made = await here.submit("sleep")
        await here.until(made.session_id, lambda each: each["event"] == "workflow.tool.started")
        await gateway.steer_task(made.task_id, "and wait", LOCAL_OWNER, channel="web")
        assert await gateway.stop(made.task_id, LOCAL_OWNER, "web") == "running"
        after = await gateway.steer_task(made.task_id, "are you there?", LOCAL_OWNER, channel="web")
        assert after.taken_as == "task"
        events = await here.until(
            made.session_id, lambda each: each["event"] == "workflow.result.final"
        )
        assert events[-1]["run_id"] == after.run_id
        tasks = await gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
        assert sorted(each.instruction for each in tasks) == ["are you there?", "sleep"]


async def test_recalling_a_message_undoes_what_it_started(home: Path) -> None:
    slow = Rules(
        [
            Reply(text="next", when=When(last_text="for the next one")),
            Reply(calls=[Call("shell", {"command": "sleep 600"})], when=When(all_results=1)),
            Reply(calls=[plan()]),
        ]
    )
    async with open_agent(home, slow, {"LARKSPUR_TOOLS__ALLOW": '["shell"]'}) as here:
        gateway = here.services.gateway

        async def recall(name: str) -> str:
            return await gateway.recall(RecallRequest("lark", "app", name, TALKER.id))

        assert await recall("m0") == "nothing"
        raw = InboundMessage(
            "lark", "app", "m9", "oc_1", TALKER.id, "{}", "2026-01-31T08:00:00.000Z"
        )
        await asyncio.wrap_future(gateway.delivery.accept(raw))
        assert await recall("m9") == "unqueued"
        running = await from_chat(here, "sleep", "m1")
        await here.until(running.session_id, lambda each: each["event"] == "workflow.tool.started")
        queued = await from_chat(here, "sleep too", "m2")
        assert await recall("m2") == "stopped"
        await from_chat(here, "unsaid", "m3", verb="steer")
        await from_chat(here, "for the next one", "m4", verb="steer")
        assert await recall("m3") == "unsaid"
        assert await recall("m1") == "stopped"
        events = await here.until(
            running.session_id, lambda each: each["event"] == "workflow.result.final"
        )
        assert (await here.run(queued)).status == "cancelled"
        assert (await here.run(running)).status == "cancelled"
        assert events[-1]["payload"]["final_answer"] == "next"
        assert await recall("m4") == "nothing"
        due = partial(here.services.stores.outbox.list_due, "lark", "app", now="9999", limit=10)
        (promised,) = await here.services.database.read(due)
        assert promised.outgoing.body == "next", "nobody is answered who took the message back"
        rows = await gateway.queries.messages(running.session_id, LOCAL_OWNER)
        assert [row.message.text for row in reversed(rows)] == ["for the next one", "next"]


async def test_a_stopped_task_can_be_resumed_and_a_completed_one_cannot(home: Path) -> None:
    async with open_agent(home, ask_once()) as here:
        gateway = here.services.gateway
        made = await here.submit("paint")
        await here.asked(made)
        with pytest.raises(Conflict, match="has not ended: it is waiting"):
            await gateway.resume(made.task_id, LOCAL_OWNER, "web")
        await gateway.stop(made.task_id, LOCAL_OWNER, "web")
        going = await gateway.resume(made.task_id, LOCAL_OWNER, "web")
        assert going.session_id == made.session_id
        asked = await here.asked(going)
        await here.answer(asked["question_id"], "text", "green")
        await here.end_of(going)
        with pytest.raises(Conflict, match="nothing to resume"):
            await gateway.resume(going.task_id, LOCAL_OWNER, "web")


async def test_a_question_stays_open_across_a_restart(home: Path) -> None:
    async with open_agent(home, reviewed()) as here:
        made = await here.submit("act", plan_review="always")
        first = await here.asked(made)
    async with open_agent(home, reviewed()) as here:
        await here.answer(first["question_id"], "text", "wash first")
        second = await here.asked(made, 2)
    async with open_agent(home, reviewed()) as here:
        await here.answer(second["question_id"])
        events = await here.end_of(made)
        sound([each for each in events if each["run_id"] == made.run_id])
        prepared = [
            each
            for each in events
            if each["event"] == "workflow.node.started" and each.get("node_id") == "prepare"
        ]
        assert len(prepared) == 1, "a pause is not a crash: prepare is not announced again"
        assert acted(here, home, made.session_id)


async def test_deleting_a_session_deletes_its_questions_but_not_the_audit_log(
    home: Path,
) -> None:
    async with open_agent(home, ask_once()) as here:
        gateway = here.services.gateway
        made = await here.submit("paint")
        asked = await here.asked(made)
        with pytest.raises(Conflict, match="has not ended"):
            await gateway.delete_session(made.session_id, LOCAL_OWNER)
        await here.answer(asked["question_id"], "text", "green")
        await here.end_of(made)
        await gateway.delete_session(made.session_id, LOCAL_OWNER)
        with pytest.raises(NotFound):
            await gateway.queries.question(QuestionId(asked["question_id"]), LOCAL_OWNER)
        entries = await gateway.queries.audit_entries(LOCAL_OWNER)
        assert [each.action for each in entries] == [
            "session.deleted", "question.answered", "question.asked",
        ]  # fmt: skip
        with pytest.raises(Forbidden):
            await gateway.queries.audit_entries(OPERATOR)


async def test_a_long_call_is_attached_in_full_to_its_question(home: Path) -> None:
    command = "touch a # " + "x" * 30_000
    async with open_agent(home, again(command)) as here:
        made = await here.submit("long", permission_mode="ask")
        (call,) = (await here.asked(made))["calls"]
        assert len(call["what"]) < 13_000
        assert "characters left out" in call["what"]
        assert call["whole"]["size"] == len(command)
        content = await here.services.attachments.get(call["whole"]["sha256"])
        assert content.decode() == command
