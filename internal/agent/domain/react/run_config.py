"""The configuration of a run, fixed when it is prepared."""

import msgspec

from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.tasks import GateMode
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart, RunLimits


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration that does not change during a Turn: prompt, tools, permissions, limits.

    `people`: people may be asked questions. `approvals`: also for approval of calls; without it, a
    call that needs approval is denied. `plan_review` selects the plans that a person must approve
    before anything runs. `isolated`: the sandbox of the process that executes the run keeps
    commands from everything but the folders of the session. `instructions` begin the first user
    message of every request. `context` are the parts of a request that do not change. `deferred`
    are tools that no request lists: the model finds them with `find_tools` and calls them with
    `use_tool`.
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
    isolated: bool = False
    instructions: str = ""
    context: tuple[ContextPart, ...] = ()
    deferred: tuple[ToolSpec, ...] = ()

    @property
    def all_tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the requests and the deferred ones."""
        return (*self.tools, *self.deferred)

    def tool(self, name: str) -> ToolSpec | None:
        """Return the specification of a tool, None if the run does not offer it."""
        return next((spec for spec in self.all_tools if spec.name == name), None)

    def uses_files(self, name: str) -> bool:
        """Return whether a call of a tool may use files of this machine."""
        spec = self.tool(name)
        return spec is None or spec.may_use_files
