"""Plans: a versioned goal with steps, each with a status."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
Complexity = Literal["simple", "complex"]
Author = Literal["agent", "larkspur"]
"""Whether the model made a plan and opened its steps, or a gate did that in its place."""
PlanReview = Literal["off", "complex", "always"]
"""Which plans a person must approve: none, complex ones, all."""

MAX_STEPS = 50
MAX_STEP_CHARS = 4_000
_NUMBER = r"^\s*(?:[-*•]|\(?\d{1,3}[.)、:\uff1a])\s*"


class PlanStep(msgspec.Struct, frozen=True):
    """One step. `id` is short and stable across versions, such as `1` or `collect`.

    `success_criteria` are lines that say how the agent knows that the step is done.
    """

    id: str
    description: str
    status: StepStatus = "pending"
    success_criteria: str = ""
    opened_by: Author = "agent"


class PlanEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's edit of a plan: 1 to 50 steps in order; `goal` "" keeps the goal."""

    steps: Annotated[
        tuple[Annotated[str, Meta(pattern=r"\S", max_length=MAX_STEP_CHARS)], ...],
        Meta(min_length=1, max_length=MAX_STEPS),
    ]
    goal: Annotated[str, Meta(max_length=MAX_STEP_CHARS)] = ""


class Plan(msgspec.Struct, frozen=True):
    """The plan of a run. A `plan` call makes the next version.

    One that is `made_by` Larkspur has the task as its only step: the agent made none.
    """

    version: int
    goal: str
    complexity: Complexity
    steps: tuple[PlanStep, ...]
    title: str = ""
    made_by: Author = "agent"

    def step(self, step_id: str) -> PlanStep | None:
        """Return the step with this id, None if there is none."""
        return next((step for step in self.steps if step.id == step_id), None)

    def marked(self, step_id: str, status: StepStatus) -> "Plan":
        """Return the plan with the new status of a step. An unknown id changes nothing."""
        return msgspec.structs.replace(
            self,
            steps=tuple(
                msgspec.structs.replace(step, status=status) if step.id == step_id else step
                for step in self.steps
            ),
        )

    def opened(self, step_id: str, success_criteria: str, by: Author) -> "Plan":
        """Return the plan with a step in progress. An unknown id changes nothing."""
        about = {"success_criteria": success_criteria, "opened_by": by}
        return msgspec.structs.replace(
            self,
            steps=tuple(
                msgspec.structs.replace(step, status="in_progress", **about)
                if step.id == step_id
                else step
                for step in self.steps
            ),
        )

    def edited(self, edit: PlanEdit) -> "Plan":
        """Return the next version with a person's edit."""
        return msgspec.structs.replace(
            self,
            made_by="agent",
            version=self.version + 1,
            goal=edit.goal or self.goal,
            steps=number_steps(edit.steps),
        )

    @property
    def listed(self) -> str:
        """The steps as lines with their ids."""
        return "\n".join(f"{step.id}. {step.description}" for step in self.steps)


def number_steps(descriptions: Sequence[str]) -> tuple[PlanStep, ...]:
    """Return pending steps with the ids `1`, `2`, … for these descriptions."""
    return tuple(PlanStep(str(n), text) for n, text in enumerate(descriptions, 1))


def read_steps(text: str) -> tuple[str, ...]:
    """Return the steps of a text, one per line, without leading numbers and bullets."""
    lines = (re.sub(_NUMBER, "", line).strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def needs_review(review: PlanReview, complexity: Complexity) -> bool:
    """Return True if a person must approve a plan of this complexity."""
    return review == "always" or (review == "complex" and complexity == "complex")
