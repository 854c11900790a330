"""Properties of the Turn under random replies, results, messages, answers, trims and crashes."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from internal.agent.domain.delegation.requests import DELEGATION_SPECS, DELEGATION_TOOLS
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import TaskId, question_id
from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.questions import Answer, Decision, Question
from internal.agent.domain.react.context_window import ContextWindow
from internal.agent.domain.react.gates import DEFERRED_TOOL_SPECS
from internal.agent.domain.react.input_forms import InputField, InputForm, InputRequest
from internal.agent.domain.react.steps import Act, Ask, AwaitTasks, Done, Pause
from internal.agent.domain.tasks import GateMode, StopReason, TaskWait
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import RunLimits, Usage
from internal.agent.store.checkpoints import CheckpointDelta, CheckpointEncoder, decode_checkpoint
from tests.support import turn_driver
from tests.support.anthropic_server import signature_of
from tests.support.images import an_image
from tests.support.strict_provider import check_messages, check_request_encoding
from tests.support.weighed_messages import merge_messages

RING = ToolSpec("mcp__birds__ring", "Ring a bird.", {"type": "object"}, "exec")
"""A deferred tool."""
IDEMPOTENT = {"read_file", "plan", "update_plan", "clarify", "request_user"}
IDEMPOTENT |= {"find_tools", "use_tool"}
UI = IDEMPOTENT - {"read_file"}
DELEGATION = {"subagent", "create_task"}
IDEMPOTENT |= DELEGATION
RISKY = {"write_file", "shell", RING.name}

TEXTS = ["", " ", "\n\t", "ok", "行く🪶", "\x00\x1b[2J", "half \ud83d", "\udc00", "a" * 3000]
DEEP = msgspec.json.decode(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}")
USED: list[Any] = [{}, {"note": "\ud83d"}, '{"note": "ok"}', []]
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "read_file": [{"path": text} for text in TEXTS],
    "write_file": [{"path": "x", "content": text} for text in TEXTS],
    "shell": [{"command": words} for words in ("ls", "ls", "make", "rm -rf /", "x; y", "$(")],
    "plan": [
        {"goal": "Herons", "steps": ["Look", "Count"], "complexity": complexity}
        for complexity in ("simple", "complex")
    ],
    "update_plan": [
        {"step_id": step, "status": status}
        for step in ("1", "2", "9")
        for status in ("in_progress", "completed", "skipped")
    ],
    "clarify": [
        {"step_id": step, "goal": "g", "success_criteria": "c", "needs_user_input": asks}
        for step in ("1", "2", "9")
        for asks in (True, False)
    ],
    "request_user": [{"question": text, "options": TEXTS} for text in TEXTS],
    "subagent": [{"prompt": text} for text in TEXTS],
    "create_task": [{"instruction": text} for text in TEXTS],
    RING.name: [{"note": text} for text in TEXTS],
    "find_tools": [{"query": text, "limit": 1} for text in (*TEXTS, "bird")],
    "use_tool": [
        {"name": name, "arguments": given}
        for name in (RING.name, "read_file", "use_tool", "no_such_tool")
        for given in USED
    ],
}
BAD: list[dict[str, Any]] = [
    {},
    {"goal": 3, "steps": [], "step_id": None, "question": "", "path": ["x"]},
    {"goal": "g" * 5000, "steps": ["s"] * 60},
    {"path": "\udfff", "\ud800": float("nan"), "x": [[{"x": "\ud83d\ude00"}]]},
    DEEP,
]
ONES = [
    *(ToolCall("", name, each) for name, some in ARGUMENTS.items() for each in some),
    *(ToolCall("", name, each) for name in ARGUMENTS for each in BAD),
    *(ToolCall("", name, {}, raw) for name in ("shell", "plan") for raw in ("{", "\ud800" * 5000)),
    ToolCall("", "use_tool", {"name": RING.name, "arguments": DEEP}),
    *(ToolCall("", name, {}) for name in ("", "no_such_tool", "x" * 300)),
]
BASIC = [
    ToolCall("", name, each)
    for name in ("read_file", "subagent", *RISKY)
    for each in ARGUMENTS[name]
]
IDS = ["", "", "2Abc-1-1", "2Abc-1-2", "2Abc-2-1", "a", "b", "c", "d", "a b", "\ud800", "i" * 200]
THOUGHTS = [
    *(Thinking(text, signature_of(text)) for text in ("", "Hm.", "行く🪶")),
    Thinking("", redacted="opaque"),
    Thinking("from another model"),
    Thinking(""),
]

REQUESTS = [
    InputRequest("S", tuple(InputForm(f"{n}", text, fields) for n in range(count)), text)
    for count, text in ((1, "行く🪶"), (2, "a" * 3000))
    for fields in (
        (),
        (InputField("n", "text", "N"), InputField("b", "boolean", "B", required=True)),
    )
]

texts = st.sampled_from(TEXTS)
calls = st.builds(
    lambda one, call_id: msgspec.structs.replace(one, call_id=call_id),
    st.sampled_from([*ONES, *BASIC * 3]),
    st.sampled_from(IDS),
)
words: st.SearchStrategy[Part] = st.sampled_from([*THOUGHTS, *map(Text, TEXTS)])
calling: st.SearchStrategy[list[Part]] = st.builds(
    lambda some, others: [*some, *others],
    st.lists(words, max_size=2),
    st.lists(calls, min_size=1, max_size=1) | st.lists(calls, min_size=1, max_size=12),
)
wordy: st.SearchStrategy[list[Part]] = st.lists(words, max_size=2)
replies = st.sampled_from([calling] * 14 + [wordy]).flatmap(lambda kind: kind)
pictures = an_image()
histories: st.SearchStrategy[list[Message]] = st.sampled_from(
    [
        [],
        [user_message("Hello"), Message("assistant", (Text("Hello."),))],
        [user_message("Stopped before a word")],
        [
            Message("user", (pictures, Text("What is it?"))),
            Message("assistant", (turn_driver.read("2Abc-1-1"), turn_driver.read("a"))),
            Message("user", (ToolResult("2Abc-1-1", ""), ToolResult("a", "x" * 2000))),
            user_message("Go on"),
            Message("assistant", (Text("A heron."),)),
            user_message("And now?"),
            Message("assistant", (turn_driver.write("2Abc-2-1"),)),
            Message("user", (ToolResult("2Abc-2-1", "not run", failed=True),)),
        ],
    ]
)
task_waits = st.builds(
    TaskWait,
    st.lists(st.sampled_from([TaskId("task-1"), TaskId("task-2")]), min_size=1).map(tuple),
    st.just("2026-01-01T00:00:00Z"),
    st.booleans(),
)
decisions: st.SearchStrategy[Decision] = st.sampled_from(["approve", "reject", "text", "expired"])


limits = st.builds(
    RunLimits,
    max_iterations=st.sampled_from([1, 2, 6, 12, 12]),
    max_cost=st.sampled_from([None, None, 0.5]),
    max_consecutive_tool_failures=st.sampled_from([1, 3, 6]),
)
gate_modes: st.SearchStrategy[GateMode] = st.sampled_from(
    ["strict", "advisory", "off", "off", "off"]
)
modes = st.sampled_from([*Mode, *[Mode.ASK] * 5, Mode.ALL])
stop_reasons: st.SearchStrategy[StopReason] = st.sampled_from(["timeout", "error", "user_stop"])


class TurnSimulation:
    """A Turn with its checkpoints, driven by random steps."""

    def __init__(self, data: st.DataObject) -> None:
        draw = self.draw = data.draw
        policy = Policy(draw(modes), allow=("shell(ls)",), deny=("shell(rm *)",))
        people = draw(st.sampled_from([True, True, False]))
        given_terms = msgspec.structs.replace(
            turn_driver.run_config(draw(gate_modes), policy, draw(limits), people=people),
            tools=(*turn_driver.TOOLS, *DEFERRED_TOOL_SPECS, *DELEGATION_SPECS),
            deferred=(RING,),
        )
        history = draw(histories)
        self.turn = turn_driver.start_turn(given_terms, history)
        answers = [
            at for at, each in enumerate(history) if each.role == "assistant" and not each.calls
        ]
        self.remembered = tuple(at for answer in answers[-1:] for at in (answer - 1, answer))
        self.turn.window = ContextWindow(essential=self.remembered)
        self.said = [turn_driver.TASK]
        self.agreed: set[str] = set()
        self.ran: Counter[str] = Counter()
        self.running: set[str] = set()
        self.rows: list[bytes] = []
        self.checkpoints = CheckpointEncoder()
        self.save()

    def save(self) -> None:
        """Store a checkpoint together with the state of its transaction."""
        point = self.checkpoints.encode(self.turn)
        assert point.offset == len(self.rows)
        self.rows += point.messages
        self.stored: tuple[CheckpointDelta, list[str], set[str]] = (
            point,
            [*self.said],
            {*self.agreed},
        )

    def step(self) -> None:
        """Take one random step."""
        match self.draw(st.sampled_from("gggggggggsctwte")):
            case "s":
                self.steer()
            case "c":
                self.crash_and_recover()
            case "t":
                self.trim_context()
            case "w":  # a message or the end of a task wakes the run
                self.turn.end_waits()
            case "e" if len(self.turn.messages) > 12:
                self.turn.end(self.draw(stop_reasons), "enough")
            case _:
                self.advance()
        if self.draw(st.booleans()):
            self.save()

    def advance(self) -> None:
        match self.turn.next():
            case Ask():
                self.add_random_reply(self.draw(replies))
            case Act():
                self.run_tools(finish_all=self.draw(st.booleans()))
            case AwaitTasks():
                self.turn.end_waits()
            case Pause(question):
                self.answer_question(question)
            case Done():
                pass

    def add_random_reply(self, parts: list[Part]) -> None:
        cost = self.draw(st.sampled_from([0.0, 0.1, None]))
        check_event_sizes(self.turn.add_reply(parts, "claude-x", Usage(1, 1), cost))

    def run_tools(self, *, finish_all: bool) -> None:
        """Run the calls, with results out of order, repeated, unknown or missing."""
        move = self.turn.next()
        assert isinstance(move, Act)
        ids = [call.call_id for call in move.calls]
        self.turn.mark_started(ids)
        self.save()  # a commit: no tool starts before it
        for call in move.calls:
            if call.call_id not in self.running:
                self.ran[call.call_id] += call.name not in IDEMPOTENT
            self.check_permission(call)
        self.running.update(ids)
        names = {call.call_id: call.name for call in move.calls}
        finished = len(ids) if finish_all else self.draw(st.integers(0, len(ids)))
        for call_id in self.draw(st.permutations(ids))[:finished]:
            if not finish_all and self.draw(st.integers(0, 3)) == 0:
                self.require_input(call_id)
                continue
            if names[call_id] in DELEGATION and self.draw(st.booleans()):
                self.await_tasks(call_id)
                continue
            text = self.draw(texts)
            self.turn.add_tool_result(ToolResult(call_id, text, self.draw(st.booleans())))
            first = self.turn.results.get(call_id)
            self.turn.add_tool_result(ToolResult(call_id, "a second result"))
            self.turn.add_tool_result(ToolResult("unknown", "x"))
            assert self.turn.results.get(call_id) == first
            if self.draw(st.booleans()):
                self.save()
        if not finish_all and self.draw(st.booleans()):
            self.crash_and_recover()

    def require_input(self, call_id: str) -> None:
        """Let a call ask people for something; it runs again with their answer."""
        if self.turn.require_input(call_id, self.draw(st.sampled_from(REQUESTS))):
            self.ran[call_id] = 0
            self.running.discard(call_id)
            assert call_id not in self.turn.started

    def await_tasks(self, call_id: str) -> None:
        """Let a call wait for tasks; it runs again when the run was woken."""
        self.turn.await_tasks(call_id, self.draw(task_waits))
        assert call_id not in self.turn.started

    def check_permission(self, call: ToolCall) -> None:
        policy, agreed = self.turn.config.policy, call.call_id in self.agreed
        free = {Mode.EDIT: {"write_file"}, Mode.ALL: RISKY}.get(policy.mode, set())
        listed = call.arguments.get("command") == "ls"
        assert call.name in {"read_file", *DELEGATION_TOOLS, *free} or listed or agreed
        assert call.arguments.get("command") != "rm -rf /"

    def steer(self) -> None:
        text = self.draw(texts)
        if isinstance(self.turn.next(), Done):
            return
        self.turn.add_user_message(text)
        if text.strip():
            self.said.append(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def answer_question(self, question: Question) -> None:
        decision, text = self.draw(decisions), self.draw(texts)
        self.save()
        yes = self.draw(st.lists(st.booleans(), max_size=12))
        items = {each.call_id: one for each, one in zip(question.calls, yes, strict=False)}
        other = question_id(self.turn.config.run_id, 1000)
        assert self.turn.resolve(Answer(other, decision, "ada", "web", text, items)) == []
        assert self.turn.next() == Pause(question)
        self.crash()  # another process may receive the answer
        answer = Answer(question.id, decision, "ada", "web", text, items)
        check_event_sizes(self.turn.resolve(answer))
        assert self.turn.resolve(answer) == []
        if decision != "expired":
            self.agreed |= {
                each.call_id
                for each in question.calls
                if items.get(each.call_id, decision == "approve")
            }

    def trim_context(self) -> None:
        budget, refused = self.draw(st.integers(0, 3000)), self.draw(st.booleans())
        if not isinstance(self.turn.next(), Ask):
            return
        event = self.turn.fit_context(budget, refused=refused)
        if event is not None:
            check_event_sizes([event])
            assert event.tokens_after <= event.tokens_before
        assert self.turn.fit_context(budget) is None

    def crash_and_recover(self) -> None:
        self.crash()
        names = {call.call_id: call.name for call in self.turn.calls}
        begun, known = self.turn.started, {*self.turn.results}
        repeat = self.draw(st.booleans())
        again = self.turn.settle_interrupted(repeat=repeat)
        ids = {call.call_id for call in again}
        safe = IDEMPOTENT if repeat else DELEGATION
        assert ids == {each for each in begun - known if names[each] in safe}
        assert self.turn.settle_interrupted(repeat=repeat) == again
        self.save()

    def crash(self) -> None:
        """Restart from the stored checkpoint; everything after it is lost."""
        point, said, agreed = self.stored
        self.turn = decode_checkpoint(turn_driver.stored_checkpoint(point)._replace(rows=self.rows))
        self.said, self.agreed, self.running = [*said], {*agreed}, set()
        self.checkpoints = CheckpointEncoder(len(self.rows))

    def check_invariants(self) -> None:
        """Check the invariants that hold after every step."""
        before = msgspec.json.encode(self.turn)
        move = self.turn.next()
        assert self.turn.next() == move
        assert msgspec.json.encode(self.turn) == before
        assert self.turn.iteration <= self.turn.config.limits.max_iterations + 1
        assert all(times <= 1 for times in self.ran.values())
        match move:
            case Ask(messages, final):
                check_messages(messages, self.said)
                check_request_encoding(messages, self.turn.config, final=final)
                unknown = msgspec.structs.replace(self.turn).next()
                assert isinstance(unknown, Ask)
                assert [*messages] == [*unknown.messages], "nothing kept is out of date"
                assert messages.tokens == unknown.messages.tokens
                assert all(each.name != RING.name for one in messages for each in one.calls)
                texts = "\n".join(message.text for message in messages)
                assert all(self.turn.messages[at].text in texts for at in self.remembered)
                assert not self.turn.pending_user_messages
            case Act(to_run):
                assert to_run
                assert len({call.call_id for call in to_run}) == len(to_run)
                assert {call.name for call in to_run} <= {"read_file", *DELEGATION, *RISKY}
                assert all(call.call_id not in self.turn.results for call in to_run)
            case Pause(question):
                assert self.turn.config.people
                assert question.kind == "clarify" or question.calls
                open_ids = {call.call_id for call in self.turn.calls} - self.turn.results.keys()
                assert {each.call_id for each in question.calls} <= open_ids
            case AwaitTasks(waits):
                open_ids = {call.call_id for call in self.turn.calls} - self.turn.results.keys()
                assert waits.keys() == open_ids
                assert not any(wait.is_over for wait in waits.values())
                assert self.turn.question is None
                assert not self.turn.pending_approvals
                assert not self.turn.started - self.turn.results.keys()
            case Done(outcome):
                assert outcome == self.turn.outcome
        said = [] if isinstance(move, Done) else self.said
        check_messages(
            merge_messages([*self.turn.run_messages(), user_message("the next task")]), said
        )

    def run_to_end(self) -> None:
        """Reply until the Turn ends by its limits; its last reply is the answer."""
        for _ in range(5 * self.turn.config.limits.max_iterations + 8):
            match self.turn.next():
                case Ask(final=True):
                    self.turn.add_reply([Text("the end")], "claude-x", Usage(1, 1), 0.0)
                    assert self.turn.outcome is not None
                    assert self.turn.outcome.answer == "the end"
                case Ask():
                    self.add_random_reply([turn_driver.read("a"), turn_driver.write("b")])
                case Act():
                    self.run_tools(finish_all=True)
                case Pause(question):
                    self.answer_question(question)
                case AwaitTasks():
                    self.turn.end_waits()
                case Done():
                    return
            self.check_invariants()
        raise AssertionError("the Turn does not end")


def check_event_sizes(events: Iterable[Event]) -> None:
    for event in events:
        assert len(msgspec.json.encode(event)) <= 2**16


@pytest.mark.slow
@given(st.data())
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_sequence_of_steps_keeps_the_invariants(data: st.DataObject) -> None:
    simulation = TurnSimulation(data)
    for _ in range(data.draw(st.integers(3, 30))):
        simulation.step()
        simulation.check_invariants()
    simulation.run_to_end()
