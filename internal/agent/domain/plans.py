"""The plan: a versioned goal with steps, each with a real status."""

from collections.abc import Sequence
from typing import Literal

import msgspec

StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
Complexity = Literal["simple", "complex"]


class PlanStep(msgspec.Struct, frozen=True):
    """One step. `id` is short and stable over versions, such as `1` or `collect`."""

    id: str
    description: str
    status: StepStatus = "pending"


class Plan(msgspec.Struct, frozen=True):
    """What the model intends. A `plan` call makes the next version; `update_plan` moves steps."""

    version: int
    goal: str
    complexity: Complexity
    steps: tuple[PlanStep, ...]
    title: str = ""

    def step(self, step_id: str) -> PlanStep | None:
        """Return the step of that id."""
        return next((step for step in self.steps if step.id == step_id), None)

    def marked(self, step_id: str, status: StepStatus) -> "Plan":
        """Return the plan with one step in a new status; unknown ids change nothing."""
        return msgspec.structs.replace(
            self,
            steps=tuple(
                msgspec.structs.replace(step, status=status) if step.id == step_id else step
                for step in self.steps
            ),
        )


def numbered(descriptions: Sequence[str]) -> tuple[PlanStep, ...]:
    """Return pending steps with the ids `1`, `2`, … for these descriptions."""
    return tuple(PlanStep(str(n), text) for n, text in enumerate(descriptions, 1))
