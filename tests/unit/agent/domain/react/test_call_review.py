"""Calls are denied, need approval, run, or are handled as control calls."""

import msgspec
import pytest

from internal.agent.domain.events.types import (
    DiagnosticError,
    NodeCompleted,
    NodeStarted,
    PlanUpdated,
    ToolCompleted,
)
from internal.agent.domain.messages import Message, Text, ToolCall, ToolResult, user_message
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import Plan, PlanReview, number_steps
from internal.agent.domain.questions import Answer, Decision
from internal.agent.domain.react.call_review import (
    MAX_APPROVAL_ITEMS,
    MAX_SHOWN_CHARS,
    NOBODY_TO_ASK,
    ONE_AT_A_TIME,
    PLAN_NOT_REVIEWED,
    CallReview,
    ControlToolHandler,
    ReviewState,
    byte_budget,
    call_text,
    denied_event,
    display_call,
    plan_updated,
)
from internal.agent.domain.react.gates import (
    ClarifyCall,
    ControlCall,
    PlanCall,
    RequestUserCall,
    UpdatePlanCall,
)
from internal.agent.domain.react.steps import Act
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tools import ToolSpec
from internal.agent.store.checkpoints import CheckpointEncoder, decode_checkpoint
from tests.support.turn_driver import (
    TOOLS,
    add_reply,
    call,
    clarify_call,
    last_results,
    make_answer,
    next_ask,
    next_question,
    plan_call,
    read,
    run_calls,
    run_config,
    start_turn,
    stored_checkpoint,
    write,
)

ASK = Policy()
LIMIT = 2**16
"""Bytes that the payload of an event may take."""

HOSTILE = {
    "controls": "\x01" * 100_000,
    "quotes": '"\\' * 50_000,
    "chinese": "鹭" * 100_000,
    "emoji": "🪶" * 100_000,
    "halves": "\ud83d" * 100_000,
    "heavy head": "\x01" * 30_000 + "a" * 100_000,
    "heavy tail": "a" * 100_000 + "鹭" * 30_000,
}


def ls(call_id: str) -> ToolCall:
    return call(call_id, "shell", command="ls")


def asking(*calls: ToolCall, policy: Policy = ASK) -> Turn:
    turn = start_turn(run_config(policy=policy, people=True))
    add_reply(turn, *calls)
    return turn


def test_an_unknown_tool_is_answered_with_the_known_tools() -> None:
    turn = start_turn(run_config())
    (event,) = add_reply(turn, call("a", "x" * 100_000))
    assert isinstance(event, ToolCompleted)
    assert "The tools are: read_file, write_file, shell, plan, " in str(event.error)
    assert event.metadata == {}
    assert len(msgspec.json.encode(event)) < 1000
    assert last_results(turn)["a"].failed


def test_malformed_arguments_are_returned_to_the_model() -> None:
    turn = start_turn(run_config())
    (event,) = add_reply(turn, ToolCall("a", "read_file", {}, '{"path": ' + "x" * 9000))
    assert isinstance(event, ToolCompleted)
    sentence = last_results(turn)["a"].text
    assert sentence.startswith("Not run: the arguments were not a JSON object.")
    assert 'You sent: {"path": xxx' in sentence
    assert len(sentence) < 700
    next_ask(turn)


def test_a_call_is_denied_by_a_rule() -> None:
    turn = start_turn(run_config(policy=Policy(Mode.ALL, deny=("shell(ls)",)), people=True))
    (event,) = add_reply(turn, ls("a"))
    sentence = "shell ls is denied by the rule shell(ls)."
    assert event == ToolCompleted(
        call_id="a",
        tool_name="shell",
        duration_ms=0,
        error=sentence,
        metadata={"denied": True, "what": "ls", "subject": "ls", "rules": []},
    )
    assert last_results(turn) == {"a": ToolResult("a", sentence, failed=True)}


def test_without_people_a_call_that_needs_approval_is_denied_with_the_missing_rule() -> None:
    turn = start_turn(run_config(policy=ASK))
    events = add_reply(turn, read("a"), ls("b"), write("c"))
    assert turn.next() == Act((read("a"),))
    run_calls(turn)
    assert [event.metadata["rules"] for event in events if isinstance(event, ToolCompleted)] == [
        ["shell(ls)"],
        ["write_file(c.txt)"],
    ]
    refused = last_results(turn)["b"]
    assert refused.failed
    assert "Nobody can be asked, so the answer is no." in refused.text
    assert refused.text.endswith(" The rule that would allow it: shell(ls)")
    (_, event) = events
    assert isinstance(event, ToolCompleted)
    assert event.metadata["what"] == "write_file\npath: c.txt\ncontent: x"


@pytest.mark.slow
def test_rules_that_cover_only_a_part_are_not_offered() -> None:
    turn = start_turn(run_config(policy=ASK))
    path = "a/" * 100_000 + "b"
    (event,) = add_reply(turn, call("a", "write_file", path=path, content=""))
    assert isinstance(event, ToolCompleted)
    assert event.metadata["rules"] == []
    assert "The rule that would allow it" not in last_results(turn)["a"].text


def test_one_question_lists_all_calls_that_need_approval_after_the_others_ran() -> None:
    turn = asking(write("a"), read("b"), ls("c"), read("d"))
    assert turn.next() == Act((read("b"), read("d")))
    turn.add_tool_result(ToolResult("a", "never run"))  # nobody agreed to it yet
    assert "a" not in turn.results
    run_calls(turn)
    question = next_question(turn)
    assert (question.kind, question.title) == (
        "approval",
        "Change 1 file and run 1 command?",
    )
    assert question.id == "question-2Abc-1"
    assert [(each.call_id, each.tool, each.risk) for each in question.calls] == [
        ("a", "write_file", "write"),
        ("c", "shell", "exec"),
    ]
    assert [each.what for each in question.calls][1] == "ls"
    assert [each.rules for each in question.calls] == [("write_file(a.txt)",), ("shell(ls)",)]
    assert all(len(each.call_hash) == 64 and not each.reason for each in question.calls)


def test_an_approval_runs_all_calls_and_keeps_their_order() -> None:
    turn = asking(write("a"), read("b"), ls("c"))
    run_calls(turn, "early")
    assert turn.resolve(make_answer(turn, "approve")) == []
    assert turn.next() == Act((write("a"), ls("c")))
    run_calls(turn, "late")
    assert list(last_results(turn).values()) == [
        ToolResult("a", "late"),
        ToolResult("b", "early"),
        ToolResult("c", "late"),
    ]


def test_calls_can_be_approved_one_by_one() -> None:
    turn = asking(write("a"), ls("b"), write("c"))
    events = turn.resolve(make_answer(turn, "approve", "not that one ", b=False, zzz=True))
    assert turn.next() == Act((write("a"), write("c")))
    sentence = "Not run: ada said no: not that one ."
    assert events == [
        ToolCompleted(
            call_id="b",
            tool_name="shell",
            duration_ms=0,
            error=sentence,
            metadata={
                "denied": True,
                "what": "ls",
                "subject": "ls",
                "rules": ["shell(ls)"],
                "refusal": "person",
                "words": "not that one",
            },
        )
    ]
    run_calls(turn)
    assert last_results(turn)["b"] == ToolResult("b", sentence, failed=True)


def test_a_rejection_with_one_approved_call_runs_only_that_call() -> None:
    turn = asking(write("a"), ls("b"))
    turn.resolve(make_answer(turn, "reject", b=True))
    assert run_calls(turn) == ("b",)
    assert last_results(turn)["a"].text == "Not run: ada said no."


@pytest.mark.parametrize(
    ("decision", "by", "sentence"),
    [
        ("reject", "ada", "Not run: ada said no."),
        ("reject", "", "Not run: nobody said no."),
        ("text", "ada", "Not run: ada said no."),
        ("expired", "", "Not run: nobody answered in time, so the answer is no."),
    ],
)
def test_every_decision_except_approve_rejects_the_calls(
    decision: Decision, by: str, sentence: str
) -> None:
    turn = asking(write("a"), ls("b"))
    turn.resolve(Answer(next_question(turn).id, decision, by, "web"))
    assert {each.text for each in last_results(turn).values()} == {sentence}
    assert all(each.failed for each in last_results(turn).values())
    next_ask(turn)


def test_an_expired_question_rejects_every_call() -> None:
    turn = asking(write("a"))
    turn.resolve(make_answer(turn, "expired", a=True))
    assert last_results(turn)["a"].failed


def test_a_call_that_changed_is_not_run() -> None:
    turn = asking(ls("a"), write("b"))
    reply = make_answer(turn, "approve")
    turn.calls = (call("a", "shell", command="rm -rf /"), turn.calls[1])
    events = turn.resolve(reply)
    assert turn.next() == Act((write("b"),))
    run_calls(turn)
    sentence = "Not run: this is not the call that a person agreed to."
    assert last_results(turn)["a"] == ToolResult("a", sentence, failed=True)
    assert [event.error for event in events if isinstance(event, ToolCompleted)] == [sentence]


def test_an_approval_does_not_hold_in_another_workspace() -> None:
    turn = asking(ls("a"))
    turn.config = msgspec.structs.replace(turn.config, workspace="/elsewhere")
    turn.resolve(make_answer(turn, "approve"))
    assert last_results(turn)["a"].failed


def test_an_answer_applies_to_the_stored_question() -> None:
    big = call("a", "write_file", path="a", content="鹭", size=10**30, ratio=0.1, none=None)
    turn = asking(big, ToolCall("b", "write_file", {"path": "b", "odd": float("inf")}))
    again = decode_checkpoint(stored_checkpoint(CheckpointEncoder().encode(turn)))
    again.resolve(make_answer(turn, "approve"))
    assert run_calls(again) == ("a", "b")


def test_an_answer_to_another_question_is_ignored() -> None:
    turn = asking(write("a"))
    before = msgspec.json.encode(turn)
    other = msgspec.structs.replace(make_answer(turn, "approve"), question_id="question-x")
    assert turn.resolve(other) == []
    assert msgspec.json.encode(turn) == before
    mine = make_answer(turn, "approve")
    turn.resolve(mine)
    run_calls(turn)
    assert turn.resolve(mine) == []


def test_the_questions_of_a_run_are_numbered() -> None:
    turn = asking(write("a"))
    turn.resolve(make_answer(turn, "reject"))
    add_reply(turn, call("q", "request_user", question="Why?"))
    assert next_question(turn).id == "question-2Abc-2"
    turn.resolve(make_answer(turn, "text", "Because."))
    add_reply(turn, write("b"))
    assert next_question(turn).id == "question-2Abc-3"
    assert next_question(turn).title == "Change b.txt?"


def test_more_calls_than_fit_into_a_question_are_returned_for_later() -> None:
    turn = start_turn(run_config(policy=ASK, people=True))
    events = add_reply(turn, *(write(f"w{n}") for n in range(MAX_APPROVAL_ITEMS + 2)))
    assert [event.call_id for event in events if isinstance(event, DiagnosticError)] == [
        "w16",
        "w17",
    ]
    assert len(next_question(turn).calls) == MAX_APPROVAL_ITEMS
    turn.resolve(make_answer(turn, "approve"))
    run_calls(turn)
    assert "Call it again later." in last_results(turn)["w17"].text
    assert not last_results(turn)["w17"].failed


@pytest.mark.parametrize(
    ("decision", "text", "result", "failed"),
    [
        ("text", "The north one.", "The north one.", False),
        ("approve", " ", "Yes, go on.", False),
        ("reject", "", "The person gave no answer.", True),
        ("expired", "\n", "The person gave no answer.", True),
    ],
)
def test_the_answer_to_a_question_is_the_result_of_the_call(
    decision: Decision, text: str, result: str, failed: bool
) -> None:
    turn = asking(call("q", "request_user", question="Which pond?", options=["N", "S"]))
    question = next_question(turn)
    assert (question.kind, question.title, question.options) == (
        "clarify",
        "Which pond?",
        ("N", "S"),
    )
    assert question.call_id == "q"
    assert turn.resolve(make_answer(turn, decision, text)) == []
    assert last_results(turn) == {"q": ToolResult("q", result, failed)}


def test_clarify_can_open_a_step_and_ask() -> None:
    turn = asking(plan_call("p", "Look", complexity="complex"))
    ask = {"step_id": "1", "goal": "Which?", "success_criteria": "c", "needs_user_input": True}
    add_reply(turn, call("q", "clarify", **ask))
    assert next_question(turn).title == "Which?"
    assert turn.open_step == "1"
    turn.resolve(make_answer(turn, "text", "All."))
    add_reply(turn, call("r", "clarify", **ask, question="Sure?"))
    assert next_question(turn).title == "Sure?"


@pytest.mark.parametrize("tool", ["request_user", "clarify"])
def test_without_people_a_question_is_answered_at_once(tool: str) -> None:
    turn = start_turn(run_config())
    asked_for = {"question": "Which?", "goal": "g", "success_criteria": "c", "step_id": "1"}
    add_reply(turn, call("q", tool, needs_user_input=True, **asked_for))
    assert last_results(turn) == {"q": ToolResult("q", NOBODY_TO_ASK)}


def test_one_question_at_a_time() -> None:
    turn = asking(
        call("q", "request_user", question="First?"),
        write("w"),
        call("r", "request_user", question="Second?"),
        read("a"),
    )
    assert next_question(turn).title == "First?"
    turn.resolve(make_answer(turn, "text", "Yes."))
    run_calls(turn)
    assert next_question(turn).kind == "approval"
    turn.resolve(make_answer(turn, "approve"))
    run_calls(turn)
    given = last_results(turn)
    assert [given[key].text for key in ("q", "w", "a")] == ["Yes.", "ok", "ok"]
    assert given["r"].text.startswith("Not asked: one question at a time.")
    assert list(given) == ["q", "w", "r", "a"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.first_rows(2)
def test_every_event_of_a_review_fits_into_the_event_limit(text: str) -> None:
    replies: list[list[ToolCall]] = [
        [call("a", text, path=text)],
        [ToolCall("a", "read_file", {}, text)],
        [call("a", "shell", command=text)],
        [call("a", "write_file", path=text, content=text)],
        [call("a", "plan", goal=text[:4000], steps=[text[:4000]], title=text[:4000])],
        [call("a", "plan", goal=text[:4000], steps=[text[:4000]] * 50, title=text[:4000])],
        [call("a", "plan", goal=3, steps=text), call("b", "plan", **{text: 1})],
        [call("a", "update_plan", step_id=text[:4000], status="completed"), clarify_call("b", "1")],
        [call(text, "read_file")],
    ]
    for policy in (ASK, Policy(Mode.DENY), Policy(Mode.PLAN), Policy(deny=("shell", "write_file"))):
        turn = start_turn(run_config(policy=policy))
        for reply in replies:
            for event in add_reply(turn, *reply):
                assert len(msgspec.json.encode(event)) <= LIMIT
            turn.settle_interrupted()
            if turn.calls:
                run_calls(turn)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("count", [1, MAX_APPROVAL_ITEMS, 40])
@pytest.mark.first_rows(6)
def test_every_question_fits_into_the_event_limit(text: str, count: int) -> None:
    many = [call(f"c{n}", "shell", command=f"{n} {text[:10_000]}") for n in range(count)]
    turn = asking(*many)
    question = next_question(turn)
    assert len(msgspec.json.encode(question)) <= LIMIT - 1000
    for event in turn.resolve(make_answer(turn, "reject", "no: " + text)):
        assert len(msgspec.json.encode(event)) <= LIMIT
    turn = asking(call("q", "request_user", question=text[:4000], options=[text[:4000]] * 20))
    assert len(msgspec.json.encode(next_question(turn))) <= LIMIT - 1000


def test_a_plan_with_large_steps_fits_into_the_event_limit() -> None:
    turn = start_turn(run_config("strict"))
    steps = ["\x01" * 4000] * 50
    add_reply(turn, call("p", "plan", goal="\x01" * 4000, steps=steps, complexity="complex"))
    for reply in (write("w"), clarify_call("o", "50")):
        for event in add_reply(turn, reply):
            assert len(msgspec.json.encode(event)) <= LIMIT
            assert not isinstance(event, PlanUpdated) or len(event.steps) == 50


def test_a_call_in_the_history_is_not_reviewed_again() -> None:
    history = [user_message("Hi"), Message("assistant", (write("old"),))]
    history += [Message("user", (ToolResult("old", "done"),)), Message("assistant", (Text("."),))]
    turn = start_turn(run_config(policy=ASK, people=True), history)
    add_reply(turn, write("old"))
    assert [each.call_id for each in next_question(turn).calls] == ["2Abc-1-1"]


def test_a_tool_of_a_channel_runs_like_any_other() -> None:
    given = run_config("strict", policy=ASK)
    show = ToolSpec("show", "Show a picture.", {"type": "object"}, "ui")
    turn = start_turn(msgspec.structs.replace(given, tools=(*given.tools, show)))
    add_reply(turn, plan_call("p"))
    add_reply(turn, call("s", "show"))
    assert turn.next() == Act((call("s", "show"),))


SPECS = {spec.name: spec for spec in TOOLS}


def test_a_command_is_shown_as_it_runs_and_other_calls_with_their_arguments() -> None:
    assert call_text(call("a", "shell", command="ls | wc"), SPECS["shell"]) == "ls | wc"
    other = call("b", "read_file", path="鹭.txt")
    assert call_text(other, SPECS["read_file"]) == "read_file\npath: 鹭.txt"
    assert call_text(call("c", "gone", x=1, y=["a"]), None) == 'gone\nx: 1\ny: ["a"]'


def test_no_value_of_a_call_looks_like_another_argument() -> None:
    forged = call("c", "send", text="hello\nto: everybody\n", to="me")
    assert call_text(forged, None) == "send\ntext:\n  hello\n  to: everybody\n  \nto: me"


def test_a_displayed_call_is_truncated_and_shows_invisible_characters() -> None:
    assert display_call(call("a", "shell", command="rm \u202ex"), SPECS["shell"]) == "rm \\u202ex"
    long = display_call(call("a", "shell", command="x" * 1_000_000), SPECS["shell"])
    assert len(long) <= MAX_SHOWN_CHARS


@pytest.mark.parametrize("calls", [0, 1, 2, 7, MAX_APPROVAL_ITEMS, 500])
def test_the_calls_of_one_question_fit_into_an_event(calls: int) -> None:
    asked = min(max(calls, 1), MAX_APPROVAL_ITEMS)
    assert 1000 < byte_budget(calls) * asked <= 48_000


def test_a_denied_call_is_an_event_that_fits_and_names_the_missing_rules() -> None:
    huge = call("a", "shell", command="\x01" * 100_000)
    event = denied_event(huge, SPECS["shell"], "no " * 100_000, ("shell(ls)",))
    assert len(msgspec.json.encode(event)) < 2**16
    metadata = event.metadata
    assert isinstance(metadata, dict)
    assert (metadata["denied"], metadata["rules"]) == (True, ["shell(ls)"])


def test_an_event_about_an_untitled_plan_has_no_title() -> None:
    plan = Plan(2, "Herons", "simple", number_steps(["Look"]))
    assert "title" not in msgspec.to_builtins(plan_updated(plan))
    titled = msgspec.structs.replace(plan, title="Birds")
    assert plan_updated(titled).title == "Birds"


PLAN = PlanCall("Herons", ("Look", "Count"))


class Session:
    """A handler and the review that it records into."""

    def __init__(self, *, people: bool = True, plan_review: PlanReview = "off") -> None:
        config = msgspec.structs.replace(run_config(people=people), plan_review=plan_review)
        state = ReviewState(None, None, 0, False, {}, 0, 0)
        self.review = CallReview(None, None, {}, 0)
        self.handler = ControlToolHandler(config, state, self.review)

    def handle(self, parsed: ControlCall) -> str | None:
        return self.handler.handle(call("c1", parsed.tool), parsed)

    def open_step(self) -> str | None:
        return self.review.open_step


def test_a_plan_is_numbered_and_versioned() -> None:
    session = Session()
    assert session.handle(PLAN) == ("Plan 1 is noted. The steps and their ids:\n1. Look\n2. Count")
    session.handle(PLAN)
    assert session.review.plan is not None
    assert session.review.plan.version == 2
    assert [type(event) for event in session.review.events] == [PlanUpdated, PlanUpdated]


def test_a_plan_under_review_waits_for_a_person() -> None:
    session = Session(plan_review="always")
    assert not session.handler.is_plan_approved()
    assert session.handle(PLAN) is None
    assert session.review.question is not None
    assert session.review.question.kind == "plan"
    assert not session.handler.is_plan_approved()
    assert session.handle(PLAN) == ONE_AT_A_TIME


def test_a_plan_under_review_fails_without_people() -> None:
    session = Session(people=False, plan_review="always")
    assert session.handle(PLAN) == PLAN_NOT_REVIEWED
    assert session.review.question is None


def test_only_complex_plans_are_reviewed_if_configured() -> None:
    session = Session(plan_review="complex")
    assert session.handler.is_plan_approved()
    assert session.handle(PLAN) is not None
    assert session.handler.is_plan_approved()
    assert session.handle(msgspec.structs.replace(PLAN, complexity="complex")) is None
    assert not session.handler.is_plan_approved()


def test_clarify_opens_a_step_and_a_final_status_closes_it() -> None:
    session = Session()
    session.handle(PLAN)
    assert session.handle(ClarifyCall("2", "Count them", "a number")) == "Step 2 is open: go on."
    assert session.open_step() == "2"
    assert session.handle(UpdatePlanCall("2", "in_progress")) == "Step 2 is in_progress."
    assert session.open_step() == "2"
    session.handle(UpdatePlanCall("2", "completed"))
    assert session.open_step() is None
    kinds = [type(event) for event in session.review.events]
    assert kinds.count(NodeStarted) == kinds.count(NodeCompleted) == 1


@pytest.mark.parametrize(
    "parsed", [ClarifyCall("9", "g", "c"), UpdatePlanCall("9", "completed")], ids=["clarify", "set"]
)
def test_an_unknown_step_is_answered_with_the_known_ones(parsed: ControlCall) -> None:
    session = Session()
    assert session.handle(parsed) == (
        "There is no step “9”. The steps are: none, there is no plan."
    )
    session.handle(PLAN)
    assert session.handle(parsed) == "There is no step “9”. The steps are: 1, 2."


def test_a_question_is_asked_once_at_a_time() -> None:
    session = Session()
    assert session.handle(RequestUserCall("Which?", ("A", "B"), multiple=True)) is None
    question = session.review.question
    assert question is not None
    assert (question.title, question.options, question.multiple) == ("Which?", ("A", "B"), True)
    assert question.id == "question-2Abc-1"
    assert session.handle(RequestUserCall("And?")) == ONE_AT_A_TIME


def test_a_question_without_options_is_not_multiple_choice() -> None:
    session = Session()
    session.handle(RequestUserCall("Which?", multiple=True))
    assert session.review.question is not None
    assert not session.review.question.multiple


def test_a_question_is_not_asked_without_people() -> None:
    assert Session(people=False).handle(RequestUserCall("Which?")) == NOBODY_TO_ASK


def test_clarify_with_a_question_opens_the_step_and_asks() -> None:
    session = Session()
    session.handle(PLAN)
    assert session.handle(ClarifyCall("1", "Look", "seen", needs_user_input=True)) is None
    assert session.open_step() == "1"
    assert session.review.question is not None
    assert session.review.question.title == "Look"
