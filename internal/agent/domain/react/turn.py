"""The Turn: the ReAct loop as a pure state machine.

`next()` returns the next step. `add_reply`, `add_tool_result`, `add_user_message` and `resolve`
feed the Turn and return the events of what changed. There is no I/O: a Turn is tested with plain
calls, stored as it is and resumed in any process. At every `Ask` the messages satisfy the strictest
provider: roles alternate, every call has exactly one result, no message is empty.
"""

from collections.abc import Mapping, Sequence

import msgspec

from internal.agent.domain.events.event import Event
from internal.agent.domain.events.types import ContextCompression, DiagnosticError
from internal.agent.domain.ids import QuestionId, question_id
from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    assign_call_ids,
    text_parts,
    user_message,
)
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Preview,
    Question,
    approval_question,
    plan_question,
)
from internal.agent.domain.react import context_window
from internal.agent.domain.react.call_review import review_calls
from internal.agent.domain.react.closing_prompts import (
    CLOSING_PROMPTS,
    EMPTY_REPLY_PROMPT,
    NO_ANSWER,
    STOP_EXPLANATIONS,
)
from internal.agent.domain.react.context_window import ContextWindow
from internal.agent.domain.react.resolution import resolve
from internal.agent.domain.react.review_state import ReviewState
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import (
    Act,
    Ask,
    Done,
    ModelSpending,
    Pause,
    TurnOutcome,
    total_cost,
    total_usage,
)
from internal.agent.domain.tasks import StopReason
from internal.agent.domain.text import replace_surrogates
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import Usage

MAX_EMPTY_REPLIES = 3
INTERRUPTED = "interrupted, outcome unknown"


class Turn(msgspec.Struct, kw_only=True):
    """The state of the loop. `messages` begins with earlier conversation; the task is `task_at`."""

    config: RunConfig
    messages: list[Message]
    task_index: int
    iteration: int = 0
    plan: Plan | None = None
    open_step: str | None = None
    calls: tuple[ToolCall, ...] = ()
    pending_approvals: dict[str, ApprovalItem] = {}
    results: dict[str, ToolResult] = {}
    started: frozenset[str] = frozenset()
    pending_user_messages: tuple[str, ...] = ()
    corrections: dict[str, int] = {}
    released_gates: frozenset[str] = frozenset()
    failures: int = 0
    empty_replies: int = 0
    spending: dict[str, ModelSpending] = {}
    question: Question | None = None
    question_count: int = 0
    approved_plan: int = 0
    plan_reviewed: bool = False
    window: ContextWindow = ContextWindow()
    closing_reason: StopReason | None = None
    outcome: TurnOutcome | None = None

    def next(self) -> Ask | Act | Pause | Done:
        """Return what comes next. Calling it again changes nothing."""
        if self.outcome is not None:
            return Done(self.outcome)
        if self.question is not None:
            return Pause(self.question)
        calls = tuple(call for call in self.calls if call.call_id not in self.results)
        if calls:
            return Act(tuple(call for call in calls if call.call_id not in self.pending_approvals))
        return Ask(
            context_window.select_messages(self.messages, self.task_index, self.window),
            bool(self.closing_reason),
        )

    @property
    def usage(self) -> Usage:
        """All tokens used so far."""
        return total_usage(self.spending)

    @property
    def cost(self) -> float | None:
        """What was spent so far in US dollars; None when a price is not known."""
        return total_cost(self.spending)

    def add_reply(
        self, parts: Sequence[Part], model: str, usage: Usage, cost: float | None
    ) -> list[Event]:
        """Take a reply of the model in."""
        self.iteration += 1
        self._spend(model, usage, cost)
        text = replace_surrogates(
            "".join(part.text for part in parts if isinstance(part, Text))
        ).strip()
        used = {call.call_id for message in self.messages for call in message.calls}
        made = (part for part in parts if isinstance(part, ToolCall))
        calls = assign_call_ids(made, used, f"call-{self.iteration}")
        if self.closing_reason is not None or self._over_budget():
            reason: StopReason = self.closing_reason or "budget_exceeded"
            return self._finish(
                TurnOutcome(reason, text or NO_ANSWER, STOP_EXPLANATIONS.get(reason, "")), text
            )
        if calls:
            self.empty_replies = 0
            self.messages.append(Message("assistant", (*text_parts(parts), *calls)))
            self.calls, self.results = calls, {}
            return self._judge(calls)
        if text:
            return self._finish(TurnOutcome("final_answer", text), text)
        return self._empty_reply()

    def mark_started(self, call_ids: Sequence[str]) -> None:
        """Note that these calls are about to run: from now on their outcome may be unknown."""
        self.started |= frozenset(call_ids)

    def add_tool_result(self, result: ToolResult) -> list[Event]:
        """Take the result of a call in; a result that is there already stays."""
        if (
            result.call_id
            not in {call.call_id for call in self.calls} - self.pending_approvals.keys()
        ):
            return []
        whole_one = ToolResult(result.call_id, replace_surrogates(result.text), result.failed)
        self.results.setdefault(result.call_id, whole_one)
        return self._settle()

    def add_user_message(self, text: str) -> None:
        """Take a person's words in: said to the model as soon as no call is open."""
        if text.strip():
            self.pending_user_messages += (replace_surrogates(text),)
        if not self.calls:
            self._say()

    def resolve(self, answer: Answer) -> list[Event]:
        """Take the answer to the open question in. An answer to another question is ignored."""
        question = self.question
        if question is None or answer.question_id != question.id:
            return []
        self.question = None
        asked = [call for call in self.calls if call.call_id in self.pending_approvals]
        ruling = resolve(question, answer, self.plan, asked, self.config)
        self.pending_approvals = {} if question.kind == "approval" else self.pending_approvals
        self.results.update(ruling.results)
        self.plan, self.closing_reason = ruling.plan, ruling.closing or self.closing_reason
        self.approved_plan = ruling.approved or self.approved_plan
        if ruling.again is not None:
            self.question = plan_question(self._fresh_id(), ruling.again, question.call_id)
        events = [*ruling.events, *self._settle()]
        self.outcome = ruling.outcome
        return events

    def allow_rules(self, rules: Sequence[str]) -> None:
        """Let the policy allow what people wrote as rules, besides what it allowed before."""
        own = self.config.policy
        given = tuple(rule for rule in dict.fromkeys(rules) if rule not in own.allow)
        policy = msgspec.structs.replace(own, allow=(*own.allow, *given))
        self.config = msgspec.structs.replace(self.config, policy=policy)

    def set_previews(self, previews: Mapping[str, Preview]) -> None:
        """Put what is seen of the open question's calls beside them, by call_id."""
        self.question = self.question and self.question.previewed(previews)

    def settle_interrupted(self) -> list[ToolCall]:
        """Settle the calls that ran when the process died; return those that may run again.

        A call that is not idempotent gets a result that says so instead of a second try.
        """
        again: list[ToolCall] = []
        for call in self.calls:
            if call.call_id in self.results or call.call_id not in self.started:
                continue
            spec = self.config.tool(call.name)
            if spec is not None and spec.idempotent:
                again.append(call)
            else:
                self.add_tool_result(ToolResult(call.call_id, INTERRUPTED, failed=True))
        self.started = frozenset(call.call_id for call in again)
        return again

    def fit_context(self, budget: int, *, refused: bool = False) -> ContextCompression | None:
        """Leave out old exchanges until the messages weigh at most `budget` tokens.

        `refused`: the provider said that they do not fit, so they weigh more than estimated.
        """
        before = context_window.window_tokens(self.messages, self.task_index, self.window)
        if refused:
            budget = min(budget, before) // 2
        window = context_window.fit_window(self.messages, self.task_index, self.window, budget)
        if window == self.window:
            return None
        shown = len(context_window.select_messages(self.messages, self.task_index, self.window))
        self.window = window
        return ContextCompression(
            messages_before=shown,
            messages_after=len(
                context_window.select_messages(self.messages, self.task_index, window)
            ),
            tokens_before=before,
            tokens_after=context_window.window_tokens(self.messages, self.task_index, window),
            budget_tokens=budget,
            reason="provider_refused" if refused else "window",
        )

    def end(self, stop_reason: StopReason, error: str, error_code: str = "") -> None:
        """End the Turn from outside: a timeout, an error. What was said last is the answer."""
        if self.outcome is None:
            said = [each.text.strip() for each in self.run_messages() if each.role == "assistant"]
            answer = next(filter(None, reversed(said)), "")
            self.outcome = TurnOutcome(stop_reason, answer, error, error_code)

    def run_messages(self) -> list[Message]:
        """Return the run's own messages, the task first, every open call answered, all said."""
        messages = self.messages[self.task_index :]
        if self.calls:
            results = tuple(
                self.results.get(call.call_id) or ToolResult(call.call_id, "not run", failed=True)
                for call in self.calls
            )
            messages = [*messages, Message("user", results)]
        return [*messages, *map(user_message, self.pending_user_messages)]

    def _spend(self, model: str, usage: Usage, cost: float | None) -> None:
        spent = self.spending.get(model, ModelSpending(cost=0.0))
        total = None if cost is None or spent.cost is None else spent.cost + cost
        self.spending = {**self.spending, model: ModelSpending(spent.usage + usage, total)}

    def _over_budget(self) -> bool:
        most = self.config.limits.max_cost
        known = sum(spent.cost or 0.0 for spent in self.spending.values())
        return most is not None and known > most

    def _finish(self, outcome: TurnOutcome, text: str) -> list[Event]:
        if text:
            self.messages.append(Message("assistant", (Text(text),)))
        self.outcome = outcome
        return []

    def _empty_reply(self) -> list[Event]:
        self.empty_replies += 1
        if self.empty_replies >= MAX_EMPTY_REPLIES:
            error = f"the model gave {MAX_EMPTY_REPLIES} empty replies"
            return self._finish(TurnOutcome("error", "", error), "")
        self.add_user_message(EMPTY_REPLY_PROMPT)
        self._close_when_spent()
        return [DiagnosticError(phase="think", error="the model gave an empty reply")]

    def _judge(self, calls: tuple[ToolCall, ...]) -> list[Event]:
        plan = (self.plan, self.open_step, self.approved_plan, self.plan_reviewed)
        bench = ReviewState(*plan, self.corrections, self.released_gates, self.question_count)
        judgement = review_calls(self.config, bench, calls)
        self.plan, self.open_step = judgement.plan, judgement.open_step
        self.corrections, self.released_gates = judgement.corrections, judgement.released
        self.results.update(judgement.results)
        self.pending_approvals = judgement.needs
        if judgement.question is not None:
            self.question_count += 1
            self.question = judgement.question
            self.plan_reviewed |= judgement.question.kind == "plan"
        return [*judgement.events, *self._settle()]

    def _settle(self) -> list[Event]:
        """When nothing is left to run: results in call order, or a question for those in need."""
        missing = [call.call_id for call in self.calls if call.call_id not in self.results]
        if self.question is not None or not self.calls:
            return []
        if missing:
            if all(call_id in self.pending_approvals for call_id in missing):
                self._open_approval()
            return []
        results = tuple(self.results[call.call_id] for call in self.calls)
        self.messages.append(Message("user", results))
        self.failures = self.failures + 1 if all(each.failed for each in results) else 0
        self.calls, self.results, self.started, self.pending_approvals = (), {}, frozenset(), {}
        self._say()
        self._close_when_spent()
        return []

    def _open_approval(self) -> None:
        targets = targets_by_tool(self.config.tools)
        items = tuple(self.pending_approvals.values())
        self.question = approval_question(self._fresh_id(), items, targets)

    def _fresh_id(self) -> QuestionId:
        self.question_count += 1
        return question_id(self.config.run_id, self.question_count)

    def _say(self) -> None:
        for text in self.pending_user_messages:
            self.messages.append(user_message(text))
        self.pending_user_messages = ()

    def _close_when_spent(self) -> None:
        """Ask for last words when the iterations are used up or nothing works any more."""
        limits = self.config.limits
        if self.closing_reason is not None:
            pass  # a person's no is the reason
        elif self.failures >= limits.max_consecutive_tool_failures:
            self.closing_reason = "error"
        elif self.iteration >= limits.max_iterations:
            self.closing_reason = "max_iterations"
        if self.closing_reason is not None:
            self.messages.append(user_message(CLOSING_PROMPTS[self.closing_reason]))
