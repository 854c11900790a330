"""The Turn: the ReAct loop as a pure state machine.

`next()` returns the next step. `add_reply`, `add_tool_result`, `add_user_message` and `resolve`
feed the Turn and return the events of the changes. There is no I/O: a Turn is tested with plain
calls, stored unchanged and resumed in any process. At every `Ask` the messages satisfy the
strictest provider: roles alternate, every call has exactly one result, no message is empty.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from internal.agent.domain.capability_states import CapabilityState, StoredState
from internal.agent.domain.delegation.requests import DELEGATION_TOOLS
from internal.agent.domain.events.types import ContextCompression, DiagnosticError, Event
from internal.agent.domain.ids import QuestionId, RunId, call_id_prefix, question_id
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    assign_call_ids,
    opaque_parts,
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
from internal.agent.domain.react.call_review import (
    CallReview,
    ReviewState,
    failed_event,
    not_run_event,
    review_calls,
)
from internal.agent.domain.react.closing_prompts import (
    CLOSING_PROMPTS,
    CUT_REPLY_PROMPT,
    EMPTY_REPLY_PROMPT,
    FILTERED,
    NO_ANSWER,
    REFUSED,
    REPEATED,
    REPEATED_CLOSING_PROMPT,
    REPEATED_PROMPT,
    STOP_EXPLANATIONS,
)
from internal.agent.domain.react.context_window import ContextWindow
from internal.agent.domain.react.deferred_tools import unwrap_call
from internal.agent.domain.react.history import History, HistoryRef
from internal.agent.domain.react.hook_outcomes import HookOutcome
from internal.agent.domain.react.input_forms import (
    MAX_ROUNDS,
    CallInput,
    InputReply,
    InputRequest,
)
from internal.agent.domain.react.measured_messages import MeasuredMessages, MessageSelection
from internal.agent.domain.react.resolution import resolve
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.steps import (
    Act,
    Ask,
    AwaitTasks,
    Done,
    ModelSpending,
    Pause,
    ReplyStop,
    TurnOutcome,
    total_cost,
    total_usage,
)
from internal.agent.domain.tasks import StopReason, TaskWait
from internal.agent.domain.text import replace_surrogates, text_tokens
from internal.agent.domain.tools import targets_by_tool
from internal.agent.domain.usage import Usage

MIN_NAMED_CHARACTERS = 8
"""The shortest start of a refused text by which its message is found."""
MAX_EMPTY_REPLIES = 3
MAX_CUT_REPLIES = 3
"""Replies in a row that are cut at the output limit. After them a final answer is requested."""
REPEATS_BEFORE_NOTE = 5
"""Equal calls with equal results in a row after which the model is told, each time."""
MAX_REPEATS = 20
"""Equal calls with equal results in a row. After them a final answer is requested."""
OUTCOME_UNKNOWN = "interrupted, outcome unknown"
NOT_RUN = "not run"


_encode = msgspec.json.Encoder(order="deterministic").encode


class Turn(msgspec.Struct, kw_only=True, dict=True):
    """The state of the loop.

    `messages` starts with the earlier conversation, which `history` refers to; the task is at
    `task_index`. `inputs` are the requests for input of calls without a result, by call_id, and
    `waits` are the tasks that they wait for. `states` are the states of capabilities, by their
    names. `repeats` counts equal exchanges in a row; `last_exchange` is their hash. `earlier_cost`
    is the known cost in US dollars of the failed runs that this one continues. `fallback` is the
    origin of the fallback that answered last, "" for the model of `config`. `unplanned` is the used
    part of the allowance without a plan, and `not_run` the number of calls of the last reply with
    calls that were not run.
    """

    config: RunConfig
    messages: list[Message]
    task_index: int
    history: HistoryRef = HistoryRef()
    iteration: int = 0
    plan: Plan | None = None
    open_step: str | None = None
    calls: tuple[ToolCall, ...] = ()
    pending_approvals: dict[str, ApprovalItem] = {}
    results: dict[str, ToolResult] = {}
    inputs: dict[str, CallInput] = {}
    waits: dict[str, TaskWait] = {}
    states: dict[str, StoredState] = {}
    started: frozenset[str] = frozenset()
    pending_user_messages: tuple[str, ...] = ()
    corrections: dict[str, int] = {}
    unplanned: int = 0
    not_run: int = 0
    failures: int = 0
    empty_replies: int = 0
    cut_replies: int = 0
    repeats: int = 0
    last_exchange: str = ""
    spending: dict[str, ModelSpending] = {}
    earlier_cost: float = 0.0
    fallback: str = ""
    question: Question | None = None
    question_count: int = 0
    approved_plan: int = 0
    plan_reviewed: bool = False
    window: ContextWindow = ContextWindow()
    closing_reason: StopReason | None = None
    closing_code: str = ""
    outcome: TurnOutcome | None = None

    def next(self) -> Ask | Act | Pause | AwaitTasks | Done:
        """Return the next step. Calling it again returns the same."""
        if self.outcome is not None:
            return Done(self.outcome)
        if self.question is not None:
            return Pause(self.question)
        calls = tuple(call for call in self.calls if call.call_id not in self.results)
        ready = tuple(call for call in calls if not self._is_waiting(call.call_id))
        if ready:
            return Act(ready)
        if calls:
            return AwaitTasks(self.waits)
        return Ask(self._selection().request, bool(self.closing_reason))

    @property
    def message_tokens(self) -> int:
        """The estimated tokens of the messages that the next request contains."""
        return self._selection().request.tokens

    @property
    def usage(self) -> Usage:
        """The tokens used so far."""
        return total_usage(self.spending)

    @property
    def cost(self) -> float | None:
        """The cost so far in US dollars, as far as prices are known; None if none is."""
        return total_cost(self.spending)

    @property
    def last_text(self) -> str:
        """The last text of the model in this run, "" if there is none."""
        texts = [each.text.strip() for each in self.run_messages() if each.role == "assistant"]
        return next(filter(None, reversed(texts)), "")

    def add_reply(
        self,
        parts: Sequence[Part],
        model: str,
        usage: Usage,
        cost: float | None,
        *,
        stop: ReplyStop = "end",
        hooks: Mapping[str, HookOutcome] | None = None,
        origin: str = "",
    ) -> list[Event]:
        """Add a reply of the model and review its calls.

        `hooks` are the outcomes of hooks by the ids that `identify_calls` returns. A call without a
        valid, unused id gets one that no other run of the session has. A call of `use_tool` is
        stored as the call that it stands for. A text that was cut at the output limit ends the
        Turn: it was continued before, as often as allowed.
        """
        self.iteration += 1
        self.cut_replies = self.cut_replies + 1 if stop == "length" else 0
        self._spend(model, usage, cost)
        text = replace_surrogates(
            "".join(part.text for part in parts if isinstance(part, Text))
        ).strip()
        calls = self._identify(parts, self.iteration)
        if stop == "refused":
            return self._finish(TurnOutcome("error", text, REFUSED, "model_refused"), text)
        if stop == "filtered":
            return self._finish(TurnOutcome("error", text, FILTERED, "model_answer_filtered"), text)
        if self.closing_reason is not None or self._over_budget():
            reason: StopReason = self.closing_reason or "budget_exceeded"
            explanation = STOP_EXPLANATIONS.get(reason, "")
            if self.closing_code:
                explanation = REPEATED.format(times=self.repeats)
            answer = text or NO_ANSWER
            outcome = TurnOutcome(reason, answer, explanation, self.closing_code)
            return [*self._refuse(calls), *self._finish(outcome, text)]
        if calls:
            self.empty_replies = 0
            review = self._review(calls, hooks, usage.output_tokens if stop == "length" else None)
            said = (*text_parts(parts), *review.calls)
            self.messages.append(Message("assistant", said, origin))
            return [*review.events, *self._settle()]
        if text:
            outcome = TurnOutcome("max_output" if stop == "length" else "final_answer", text)
            return self._finish(outcome, text, opaque_parts(parts), origin)
        return self._cut_reply(usage) if stop == "length" else self._empty_reply()

    def identify_calls(self, parts: Sequence[Part]) -> tuple[ToolCall, ...]:
        """Return the calls of a reply as `add_reply` stores them, with their ids."""
        return self._identify(parts, self.iteration + 1)

    def _identify(self, parts: Sequence[Part], iteration: int) -> tuple[ToolCall, ...]:
        sent = [part for part in parts if isinstance(part, ToolCall)]
        return self._with_ids([unwrap_call(call, self.config.deferred) for call in sent], iteration)

    @property
    def reply_call_ids(self) -> tuple[str, ...]:
        """The calls of the newest reply with calls, in order."""
        asked = next((each for each in reversed(self.messages) if each.calls), None)
        return () if asked is None else tuple(call.call_id for call in asked.calls)

    def mark_started(self, call_ids: Sequence[str]) -> None:
        """Record that these calls start: from now on their outcome may be unknown."""
        self.started |= frozenset(call_ids)

    def add_tool_result(self, result: ToolResult) -> list[Event]:
        """Add the result of a call. An existing result is kept."""
        if (
            result.call_id
            not in {call.call_id for call in self.calls} - self.pending_approvals.keys()
        ):
            return []
        text = replace_surrogates(result.text)
        cleaned = ToolResult(result.call_id, text, result.failed, result.images)
        self.results.setdefault(result.call_id, cleaned)
        self.inputs = {key: each for key, each in self.inputs.items() if key != result.call_id}
        self.waits = {key: each for key, each in self.waits.items() if key != result.call_id}
        return self._settle()

    def require_input(self, call_id: str, request: InputRequest) -> bool:
        """Request input for a running call from people; it runs again when they have answered.

        Without people every form is declined. Returns False if the call has asked too often.
        """
        earlier = self.inputs.get(call_id)
        round_number = 1 if earlier is None else earlier.round + 1
        if round_number > MAX_ROUNDS:
            return False
        needed = CallInput(request, round_number)
        self.inputs = {
            **self.inputs,
            call_id: needed if self.config.people else needed.declined(),
        }
        self.started -= {call_id}
        self._settle()
        return True

    def await_tasks(self, call_id: str, wait: TaskWait) -> None:
        """Let a running call wait for tasks; it runs again when the run was woken."""
        self.waits = {**self.waits, call_id: wait}
        self.started -= {call_id}
        self._settle()

    def end_waits(self) -> None:
        """Run the calls again that wait for tasks: some have ended, or a person wrote."""
        self.waits = {
            call_id: msgspec.structs.replace(wait, is_over=True)
            for call_id, wait in self.waits.items()
        }

    def remember(self, state: CapabilityState) -> None:
        """Replace the state of a capability."""
        self.states = state.added_to(self.states)

    def input_reply(self, call_id: str) -> InputReply | None:
        """Return the reply with which a call continues, None if it has not been run before."""
        found = self.inputs.get(call_id)
        return None if found is None else found.reply

    def add_user_message(self, text: str, files: Sequence[Part] = ()) -> None:
        """Add a user message. The model gets it as soon as no call is pending.

        Raises:
            ValueError: it comes with files while a call is pending.
        """
        if files:
            if self.calls:
                raise ValueError("a message with files waits for the results of the calls")
            self.messages.append(Message("user", (*files, Text(replace_surrogates(text)))))
        elif text.strip():
            self.pending_user_messages += (replace_surrogates(text),)
        if not self.calls:
            self._flush_user_messages()

    def resolve(self, answer: Answer) -> list[Event]:
        """Apply the answer to the open question. An answer to another question is ignored."""
        question = self.question
        if question is None or answer.question_id != question.id:
            return []
        self.question = None
        if (needed := self.inputs.get(question.call_id)) is not None:
            self.inputs = {**self.inputs, question.call_id: needed.with_answer(answer)}
            return self._settle()
        pending = [call for call in self.calls if call.call_id in self.pending_approvals]
        resolution = resolve(question, answer, plan=self.plan, pending=pending, config=self.config)
        self.pending_approvals = {} if question.kind == "approval" else self.pending_approvals
        self.results.update(resolution.results)
        self.plan, self.closing_reason = (
            resolution.plan,
            resolution.closing_reason or self.closing_reason,
        )
        self.approved_plan = resolution.approved_plan or self.approved_plan
        if resolution.next_plan is not None:
            self.question = plan_question(self._fresh_id(), resolution.next_plan, question.call_id)
        events = [*resolution.events, *self._settle()]
        self.outcome = resolution.outcome
        return events

    def allow_rules(self, rules: Sequence[str]) -> None:
        """Add allow rules to the policy."""
        policy = self.config.policy
        added = tuple(rule for rule in dict.fromkeys(rules) if rule not in policy.allow)
        policy = msgspec.structs.replace(policy, allow=(*policy.allow, *added))
        self.config = msgspec.structs.replace(self.config, policy=policy)

    def fail_pending(self, failures: Mapping[str, str]) -> list[Event]:
        """Settle calls of the open approval question that would fail, without asking.

        `failures` are the errors for the model, by call_id. The question is closed if it is about
        no other call.
        """
        failed = [call for call in self.calls if call.call_id in failures]
        if not failed or self.question is None:
            return []
        for call in failed:
            text = replace_surrogates(failures[call.call_id])
            self.results[call.call_id] = ToolResult(call.call_id, text, failed=True)
        self.pending_approvals = {
            call_id: item
            for call_id, item in self.pending_approvals.items()
            if call_id not in failures
        }
        question, self.question = self.question, None
        if self.pending_approvals:
            items, targets = tuple(self.pending_approvals.values()), question.targets
            self.question = approval_question(question.id, items, targets)
        completed = [failed_event(call, failures[call.call_id]) for call in failed]
        return [*completed, *self._settle()]

    def set_previews(self, previews: Mapping[str, Preview]) -> None:
        """Add previews to the calls of the open question, by call_id."""
        self.question = self.question and self.question.with_previews(previews)

    def note_stopped(self, texts: Mapping[str, str]) -> None:
        """Store the known results of calls that were stopped with the run, by call_id."""
        for call in self.calls:
            if call.call_id in texts and call.call_id not in self.results:
                text = replace_surrogates(texts[call.call_id])
                self.results[call.call_id] = ToolResult(call.call_id, text, failed=True)

    def settle_interrupted(
        self, *, repeat: bool = True, texts: Mapping[str, str] | None = None
    ) -> list[ToolCall]:
        """Settle the calls that ran when the process died; return the repeatable ones.

        A call that is not idempotent gets an error result instead; without `repeat` so does every
        call that may have killed the process. A call for subtasks is repeated in any case, or the
        model would not know which subtasks it has created. A call that waits for people did not
        run. `texts` are the known results of the calls, by call_id.
        """
        repeatable: list[ToolCall] = []
        for call in self.calls:
            if call.call_id in self.results or call.call_id not in self.started:
                continue
            spec = self.config.tool(call.name)
            is_safe = repeat or call.name in DELEGATION_TOOLS
            if is_safe and spec is not None and spec.idempotent:
                repeatable.append(call)
            else:
                text = (texts or {}).get(call.call_id, OUTCOME_UNKNOWN)
                self.add_tool_result(ToolResult(call.call_id, text, failed=True))
        self.started = frozenset(call.call_id for call in repeatable)
        return repeatable

    def fit_context(self, budget: int, *, refused: bool = False) -> ContextCompression | None:
        """Leave out old exchanges until the messages take at most `budget` tokens.

        `refused`: the provider rejected the request as too long, so the estimate was too low. The
        instructions are never shortened.
        """
        if self.config.instructions:
            budget = max(budget - text_tokens(self.config.instructions), 1)
        if refused:
            budget = min(budget, self._selection().fitted.tokens) // 2
        names = {tool.name for tool in self.config.tools if tool.retained}
        before = self._selection().fitted
        if before.tokens <= budget:
            return None
        weighed = self._known().weighed
        window = context_window.fit_window(
            weighed,
            self.task_index,
            self.window,
            budget,
            retained=lambda: context_window.retained_calls(weighed, names, budget),
        )
        if window == self.window:
            return None
        self.window = window
        after = self._selection().fitted
        return ContextCompression(
            messages_before=len(before),
            messages_after=len(after),
            tokens_before=before.tokens,
            tokens_after=after.tokens,
            budget_tokens=budget,
            reason="provider_refused" if refused else "window",
        )

    def leave_out_refused(self, named: str = "") -> RequestLoss | None:
        """Leave out parts that a content filter may have refused; None if only the task is left.

        The newest results come first: the messages before them were accepted. The conversation
        before the run follows, which another provider may have accepted. `named` is the message
        that the filter names, as in `Refusal`: nothing else is left out.
        """
        place = self._place_of_refused(named)
        if place == "history":
            return self._leave_out_history() or self._leave_out_results()
        if place == "task":
            return None
        left_out = self._leave_out_results()
        return left_out or (None if place == "newest" else self._leave_out_history())

    def _place_of_refused(self, named: str) -> Literal["history", "newest", "task", ""]:
        """Return where the message is that a content filter names, "" if that is not known.

        For a refused reply nothing of the request is to blame, as for a task.
        """
        roles: dict[str, Literal["history", "newest", "task"]] = {
            "history": "history",
            "user": "newest",
            "assistant": "task",
        }
        if named in roles:
            return roles[named]
        start = named.partition("...")[0].strip()  # long texts are cut in the middle
        if len(start) < MIN_NAMED_CHARACTERS:
            return ""
        own = self.messages[self.task_index :]
        if own and any(start in _words(part) for part in own[-1].parts):
            return "newest"
        earlier = (part for each in self.messages[: self.task_index] for part in each.parts)
        return "history" if any(start in _words(part) for part in earlier) else ""

    def _leave_out_results(self) -> RequestLoss | None:
        newest = self.messages[-1] if self.messages[self.task_index :] else None
        parts = () if newest is None else newest.parts
        results = tuple(part.call_id for part in parts if isinstance(part, ToolResult))
        if new := [each for each in results if each not in self.window.refused]:
            refused = (*self.window.refused, *new)
            self.window = msgspec.structs.replace(self.window, refused=refused)
            return RequestLoss("results", len(new))
        return None

    def _leave_out_history(self) -> RequestLoss | None:
        if self.window.history_from < self.task_index:
            first = max(self.task_index, self.window.exchanges_from)
            self.window = msgspec.structs.replace(
                self.window, history_from=self.task_index, exchanges_from=first, essential=()
            )
            return RequestLoss("history", self.task_index)
        return None

    def add_history(self, history: History) -> None:
        """Add the earlier conversation to a new Turn or to one that was stored without it."""
        if len(history.weighed) != self.history.count:  # another version selects other messages
            refused = self.window.refused
            self.window = ContextWindow(essential=history.essential, refused=refused)
        self.messages = [*history.messages, *self.messages]
        self.task_index += len(history.weighed)
        self.history = history.ref
        known = self.__dict__["known"] = MeasuredMessages()
        known.add(history.weighed)

    def resume_as(self, run_id: RunId, instruction: str, until: int) -> None:
        """Continue the stored Turn of a failed run as the Turn of a new run of its session.

        The task of the new run is `instruction`. The work so far, the plan, the iterations and the
        cost towards the budget are kept. The messages of the failed run are now messages of the
        session, up to number `until`: they become a part of the history. The failed run keeps the
        states of its capabilities.
        """
        self.history = msgspec.structs.replace(self.history, until=until, count=0)
        self.messages, self.task_index = [user_message(instruction)], 0
        self.config = msgspec.structs.replace(self.config, run_id=run_id, isolated=False)
        self.earlier_cost, self.spending = self._known_cost(), {}
        self._forget_calls()
        self.pending_user_messages, self.question = (), None
        self.states = {}
        self.failures, self.empty_replies, self.fallback = 0, 0, ""
        self.unplanned, self.not_run = 0, 0
        self.repeats, self.last_exchange, self.closing_code = 0, "", ""
        self.window, self.closing_reason, self.outcome = ContextWindow(), None, None

    def answer(self, text: str) -> None:
        """End a new Turn with an answer that needs no model."""
        self._finish(TurnOutcome("final_answer", text), text)

    def end(self, stop_reason: StopReason, error: str, error_code: str = "") -> None:
        """End the Turn from outside, as for a timeout. The last text of the model is the answer."""
        if self.outcome is None:
            self.outcome = TurnOutcome(stop_reason, self.last_text, error, error_code)

    def run_messages(self) -> list[Message]:
        """Return the messages of the run from the task on, with a result for every call.

        The outcome of a call that has started is unknown until it has a result.
        """
        messages = self.messages[self.task_index :]
        if self.calls:
            messages = [*messages, self._call_results()]
        return [*messages, *map(user_message, self.pending_user_messages)]

    def _refuse(self, calls: Sequence[ToolCall]) -> list[Event]:
        """Return the events of calls that come after the last reply with calls."""
        self.not_run = len(calls) or self.not_run
        return [not_run_event(call, self.config.tool(call.name), "end") for call in calls]

    def _with_ids(self, calls: Sequence[ToolCall], iteration: int) -> tuple[ToolCall, ...]:
        if not calls:
            return ()
        used = {*self._known().call_ids}
        return assign_call_ids(calls, used, call_id_prefix(self.config.run_id, iteration))

    def _call_results(self) -> Message:
        """Return the message with the results of the calls, in their order."""
        results = (
            self.results.get(call.call_id) or self._missing_result(call.call_id)
            for call in self.calls
        )
        named = tuple(
            msgspec.structs.replace(result, wire_id=call.wire_id) if call.wire_id else result
            for call, result in zip(self.calls, results, strict=True)
        )
        asked = next((each for each in reversed(self.messages) if each.calls), None)
        return Message("user", named, asked.origin if asked else "")

    def _missing_result(self, call_id: str) -> ToolResult:
        has_started = call_id in self.started or call_id in self.inputs or call_id in self.waits
        text = OUTCOME_UNKNOWN if has_started else NOT_RUN
        return ToolResult(call_id, text, failed=True)

    def _spend(self, model: str, usage: Usage, cost: float | None) -> None:
        spent = self.spending.get(model, ModelSpending(cost=0.0))
        total = None if cost is None or spent.cost is None else spent.cost + cost
        self.spending = {**self.spending, model: ModelSpending(spent.usage + usage, total)}

    def _over_budget(self) -> bool:
        cost, tokens = self.config.limits.max_cost, self.config.limits.max_tokens
        spent = self.spending.values()
        unpriced = sum(each.usage.total for each in spent if each.cost is None)
        return (cost is not None and self._known_cost() > cost) or (
            tokens is not None and unpriced > tokens
        )

    def _known_cost(self) -> float:
        return self.earlier_cost + sum(spent.cost or 0.0 for spent in self.spending.values())

    def _finish(
        self, outcome: TurnOutcome, text: str, opaque: tuple[Part, ...] = (), origin: str = ""
    ) -> list[Event]:
        if text:
            wrote = origin if opaque else ""
            self.messages.append(Message("assistant", (*opaque, Text(text)), wrote))
        self.outcome = outcome
        return []

    def _empty_reply(self) -> list[Event]:
        self.empty_replies += 1
        if self.empty_replies >= MAX_EMPTY_REPLIES:
            error = f"the model gave {MAX_EMPTY_REPLIES} empty replies"
            return self._finish(TurnOutcome("error", "", error, "model_empty"), "")
        self.add_user_message(EMPTY_REPLY_PROMPT)
        self._close_if_exhausted()
        return [DiagnosticError(phase="think", error="the model gave an empty reply")]

    def _cut_reply(self, usage: Usage) -> list[Event]:
        self.add_user_message(CUT_REPLY_PROMPT.format(tokens=usage.output_tokens))
        self._close_if_exhausted()
        error = "the model's reply was cut at the output limit before it had any text"
        return [DiagnosticError(phase="think", error=error)]

    def _review(
        self,
        calls: tuple[ToolCall, ...],
        hooks: Mapping[str, HookOutcome] | None,
        cut_at: int | None,
    ) -> CallReview:
        plan = (self.plan, self.open_step, self.approved_plan, self.plan_reviewed)
        state = ReviewState(
            *plan,
            self.corrections,
            self.unplanned,
            self.question_count,
            cut_at,
            self.iteration,
            self.messages[self.task_index].text,
        )
        review = review_calls(self.config, state, calls, hooks)
        self.plan, self.open_step = review.plan, review.open_step
        self.corrections, self.unplanned = review.corrections, review.unplanned
        self.not_run = review.not_run
        self.calls, self.results = review.calls, dict(review.results)
        self.pending_approvals = review.pending_approvals
        if review.question is not None:
            self.question_count += 1
            self.question = review.question
            self.plan_reviewed |= review.question.kind == "plan"
        return review

    def _settle(self) -> list[Event]:
        """When no call is left to run, add the results in call order or ask for approvals."""
        missing = [call.call_id for call in self.calls if call.call_id not in self.results]
        if self.question is not None or not self.calls:
            return []
        if missing:
            if all(map(self._is_waiting, missing)):
                self._open_question([each for each in missing if each not in self.waits])
            return []
        given = self._call_results()
        self.messages.append(given)
        results = tuple(part for part in given.parts if isinstance(part, ToolResult))
        self.failures = self.failures + 1 if all(each.failed for each in results) else 0
        self._count_repeats(results)
        self._forget_calls()
        self._flush_user_messages()
        self._close_if_exhausted()
        if self.closing_reason is None and not self.repeats % REPEATS_BEFORE_NOTE:
            self.messages.append(user_message(REPEATED_PROMPT.format(times=self.repeats)))
        return []

    def _count_repeats(self, results: Sequence[ToolResult]) -> None:
        """Count equal calls with equal results in a row. A word of a person ends the row."""
        calls = [(call.name, call.arguments, call.malformed) for call in self.calls]
        answers = [(each.text, each.failed, each.images) for each in results]
        exchange = hashlib.blake2s(_encode((calls, answers)), digest_size=16).hexdigest()
        is_again = exchange == self.last_exchange and not self.pending_user_messages
        self.repeats = self.repeats + 1 if is_again else 1
        self.last_exchange = exchange

    def _is_waiting(self, call_id: str) -> bool:
        """Return True if a call waits for people or for tasks."""
        wait = self.waits.get(call_id)
        if wait is not None:
            return not wait.is_over
        needed = self.inputs.get(call_id)
        return call_id in self.pending_approvals or (needed is not None and not needed.is_complete)

    def _forget_calls(self) -> None:
        self.calls, self.results, self.started = (), {}, frozenset()
        self.pending_approvals, self.inputs, self.waits = {}, {}, {}

    def _open_question(self, waiting: Sequence[str]) -> None:
        """Ask about the next call that needs values, or for all approvals, if there are any."""
        call_id = next((each for each in waiting if each in self.inputs), None)
        if call_id is None and waiting:
            self._open_approval()
        elif call_id is not None:
            self.question = self.inputs[call_id].question(self._fresh_id(), call_id)

    def _open_approval(self) -> None:
        targets = targets_by_tool(self.config.tools)
        items = tuple(self.pending_approvals.values())
        self.question = approval_question(self._fresh_id(), items, targets)

    def _fresh_id(self) -> QuestionId:
        self.question_count += 1
        return question_id(self.config.run_id, self.question_count)

    def _known(self) -> MeasuredMessages:
        known: MeasuredMessages | None = self.__dict__.get("known")
        if known is None or not known.are_of(self.messages):
            known = self.__dict__["known"] = MeasuredMessages()
        known.update(self.messages)
        return known

    def _selection(self) -> MessageSelection:
        return self._known().select(self.task_index, self.window, self.config)

    def _flush_user_messages(self) -> None:
        for text in self.pending_user_messages:
            self.messages.append(user_message(text))
        self.pending_user_messages = ()

    def _close_if_exhausted(self) -> None:
        """Request a final answer when the iterations are used up or every call fails."""
        limits = self.config.limits
        if self.closing_reason is not None:
            pass  # the plan was rejected
        elif self.failures >= limits.max_consecutive_tool_failures:
            self.closing_reason = "error"
        elif self.cut_replies >= MAX_CUT_REPLIES:
            self.closing_reason = "max_output"
        elif self.iteration >= limits.max_iterations:
            self.closing_reason = "max_iterations"
        elif self.repeats >= MAX_REPEATS:
            self.closing_reason, self.closing_code = "error", "model_repeats"
        if self.closing_code:
            prompt = REPEATED_CLOSING_PROMPT.format(times=self.repeats)
            self.messages.append(user_message(prompt))
        elif self.closing_reason is not None:
            self.messages.append(user_message(CLOSING_PROMPTS[self.closing_reason]))


def _words(part: Part) -> str:
    return part.text if isinstance(part, Text | ToolResult) else ""
