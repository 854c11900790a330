"""Terms: what does not change while a Turn lasts."""

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import RunLimits


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change in a Turn: who the agent is, what it may call and use.

    `people`: questions may be opened to people; `approvals`: also those about calls, where a Need
    is a no without. `plan_review` says which plans a person must agree to before anything is done.
    """

    run_id: RunId
    system: str
    model: str
    tools: tuple[ToolSpec, ...]
    policy: Policy
    limits: RunLimits
    gates: GateMode
    workspace: str
    people: bool = False
    approvals: bool = True
    plan_review: PlanReview = "off"

    def tool(self, name: str) -> ToolSpec | None:
        """Return the specification of a tool, None if the run does not offer it."""
        return next((spec for spec in self.tools if spec.name == name), None)
