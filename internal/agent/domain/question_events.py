"""The events of questions: one when a person is asked, one for the single accepted answer."""

from typing import ClassVar

from msgspec import UNSET, UnsetType

from internal.agent.domain.event import Event, NodeKind
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Asking, Audience, Decision, Grant, QuestionKind


class QuestionAsked(Event, frozen=True, kw_only=True):
    """The run pauses until a person answers. `who` may answer: operators, or the asker as well."""

    name: ClassVar[str] = "workflow.question.asked"
    question_id: str
    kind: QuestionKind
    title: str
    body: str
    options: tuple[str, ...]
    expires_at: str
    calls: tuple[Asking, ...] = ()
    multiple: bool = False
    plan: Plan | UnsetType = UNSET
    who: Audience = "operators"

    def node(self) -> tuple[str, NodeKind]:
        """The question."""
        return self.question_id, "question"


class QuestionAnswered(Event, frozen=True, kw_only=True):
    """The single accepted answer to a question. `answered_name` is what people call them."""

    name: ClassVar[str] = "workflow.question.answered"
    question_id: str
    decision: Decision
    answered_by: str
    answered_via: str
    answered_name: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    items: dict[str, bool] | UnsetType = UNSET
    grant: Grant | UnsetType = UNSET
    rules: tuple[str, ...] | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """The question."""
        return self.question_id, "question"
