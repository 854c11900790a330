"""The order of capabilities at the points of a run, and their combined decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    ModelReply,
    ReceivedParts,
    ReviewedCall,
    RunCall,
    UserMessage,
)
from internal.agent.capabilities.endings import ENDINGS, Departure, Ending
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.run_draft import DraftChange, PromptScope, RunDraft
from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Text
from internal.agent.domain.react.hook_outcomes import HookDecision, HookOutcome
from internal.agent.domain.react.steps import Done
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tasks import Attachment, RunSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelLimits, ModelRequest, ModelResponse
from tests.support.store_records import a_run

FILE = Attachment("a.txt", "text/plain", "", "", 1)
NO_RUN: Any = None
"""The capabilities of these tests do not look at the run."""


class Around(Capability):
    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    async def around_call(self, _call: RunCall, call_next: CallNext, /) -> CallReport:
        self._seen.append(f"{self._name} before")
        try:
            report = await call_next()
        finally:
            self._seen.append(f"{self._name} after")
        return CallReport(f"{self._name}({report.text})", report.failed)


class Reviewer(Capability):
    def __init__(self, decision: HookDecision) -> None:
        self._decision = decision

    async def review_calls(
        self, _run: Any, _turn: Turn, _calls: Sequence[ReviewedCall], /
    ) -> Mapping[str, HookOutcome]:
        return {"c1": HookOutcome(self._decision)}


class Leaver(Capability):
    def __init__(self, left: list[tuple[str, Departure]]) -> None:
        self._left = left

    async def leave(self, run_id: RunId, departure: Departure, /) -> None:
        self._left.append((run_id, departure))


class Failing(Capability):
    def committed(self, _run: RunContext, _ending: Ending, /) -> None:
        raise ZeroDivisionError


class Committed(Capability):
    def __init__(self, endings: list[Ending]) -> None:
        self._endings = endings

    def committed(self, _run: RunContext, ending: Ending, /) -> None:
        self._endings.append(ending)


class Speaker(Capability):
    def __init__(self, word: str) -> None:
        self._word = word

    def contribute(self, _scope: PromptScope, /) -> DraftChange:
        return lambda draft: replace(draft, problems=(*draft.problems, self._word))

    async def receive(self, _run: Any, message: UserMessage, /) -> ReceivedParts:
        return ReceivedParts((Text(f"{self._word} {message.text}"),))

    async def before_request(self, _run: Any, _turn: Any, request: ModelRequest) -> ModelRequest:
        return replace(request, system=request.system + self._word)

    async def after_reply(self, _run: Any, response: ModelResponse, /) -> ModelReply:
        reply = replace(response, parts=(*response.parts, Text(self._word)))
        return ModelReply(reply, lost=(RequestLoss("reply_pictures", 1),))


async def finished() -> CallReport:
    return CallReport("done", failed=False)


def test_a_capability_that_fails_after_the_commit_affects_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    endings: list[Ending] = []
    run = RunContext(NO_RUN, a_run(), NO_RUN, NO_RUN, NO_RUN)
    Capabilities((Failing(), Committed(endings))).committed(run, ENDINGS[Done])
    assert endings == [ENDINGS[Done]]
    [logged] = caplog.records
    assert (logged.message, vars(logged)["run_id"]) == ("capability failed", run.run.id)


async def test_the_first_capability_is_the_outermost_around_a_call() -> None:
    seen: list[str] = []
    found = Capabilities((Around("a", seen), Leaver([]), Around("b", seen)))
    report = await found.around_call(NO_RUN, finished)
    assert report.text == "a(b(done))"
    assert seen == ["a before", "b before", "b after", "a after"]


async def test_what_a_call_raises_passes_all_capabilities() -> None:
    seen: list[str] = []

    async def fails() -> CallReport:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        await Capabilities((Around("a", seen), Around("b", seen))).around_call(NO_RUN, fails)
    assert seen == ["a before", "b before", "b after", "a after"]


@pytest.mark.parametrize(
    ("decisions", "strictest"),
    [
        (("pass", "ask"), "ask"),
        (("refuse", "pass"), "refuse"),
        (("ask", "refuse", "pass"), "refuse"),
    ],
)
async def test_the_strictest_decision_about_a_call_counts(
    decisions: tuple[HookDecision, ...], strictest: HookDecision
) -> None:
    found = Capabilities(tuple(map(Reviewer, decisions)))
    assert found.reviews_calls
    assert await found.review_calls(NO_RUN, NO_RUN, []) == {"c1": HookOutcome(strictest)}


async def test_a_point_that_nobody_names_does_nothing() -> None:
    left: list[tuple[str, Departure]] = []
    found = Capabilities((Leaver(left),))
    assert not found.reviews_calls
    assert await found.review_calls(NO_RUN, NO_RUN, []) == {}
    assert (await found.around_call(NO_RUN, finished)).text == "done"
    await found.leave(RunId("run-1"), "stopped")
    assert left == [("run-1", "stopped")]


async def test_each_capability_adds_to_what_those_before_it_made() -> None:
    found = Capabilities((Speaker("a"), Leaver([]), Speaker("b")))
    draft = RunDraft(ModelLimits(200_000, 32_000), 128, ())
    for change in found.contribute(PromptScope(RunSpec(), "/srv")):
        changed = change(draft)
        assert isinstance(changed, RunDraft)
        draft = changed
    assert draft.problems == ("a", "b")
    received = await found.receive(NO_RUN, UserMessage("/srv", "hi", (FILE,)))
    assert received.parts == (Text("a hi"), Text("b hi"))
    request = ModelRequest("claude-x", "", ())
    assert (await found.before_request(NO_RUN, NO_RUN, request)).system == "ab"
    reply = await found.after_reply(NO_RUN, ModelResponse((), Usage(), "end", "claude-x"))
    assert reply.response.parts == (Text("a"), Text("b"))
    assert len(reply.lost) == 2
