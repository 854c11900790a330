"""The prompt of a run: everything that the model gets besides the conversation."""

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.prompt.context_use import fixed_parts
from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.agent.capabilities.registry import Capabilities
from internal.agent.capabilities.run_draft import DraftChange, Opening, PromptScope, RunDraft
from internal.agent.domain.delegation.requests import DELEGATION_TOOLS
from internal.agent.domain.ids import SessionId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.react.context_window import message_budget
from internal.agent.domain.react.deferred_tools import MAX_TOOLS
from internal.agent.domain.react.gates import CONTROL_SPECS
from internal.agent.domain.tasks import RunSpec
from internal.agent.domain.text import text_tokens
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.runtime import Clock
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.agent.ports.tools import ToolSource, WithheldTool
from internal.agent.store.database import Read

_MAX_DIRECT_SECONDS = 0.001


class RunPrompt(NamedTuple):
    """The model's input before the conversation, in the folder `workspace` (an absolute path).

    `budget` is the number of tokens left for the conversation, `parts` the numbers that the prompt
    takes. `problems` are sentences on unused files, and on a model that the provider may not have;
    `withheld` are the existing tools that the run does not have. `deferred` are tools that it has
    and that no request lists. `rules` allow calls.
    """

    model: str
    workspace: str
    system: str
    instructions: str
    tools: tuple[ToolSpec, ...]
    budget: int
    parts: tuple[ContextPart, ...]
    problems: tuple[str, ...]
    withheld: tuple[WithheldTool, ...]
    deferred: tuple[ToolSpec, ...] = ()
    rules: tuple[str, ...] = ()


class RunPromptBuilder:
    """Builds the prompts of runs.

    Args:
        tools: all tools but the control tools.
        book: the limits of the models.
        capabilities: add to the prompts.
        sandbox: what the sandbox of this process can do.
        clock: tells the date.
        max_tools: returns how many tools a request to a model may have.
    """

    def __init__(
        self,
        tools: ToolSource,
        book: ModelBook,
        *,
        capabilities: Capabilities,
        sandbox: SandboxCapabilities,
        clock: Clock,
        max_tools: Callable[[str], int] = lambda _model: MAX_TOOLS,
        time_zone: str = "",
    ) -> None:
        self._tools = tools
        self._book = book
        self._capabilities = capabilities
        self._sandbox = sandbox
        self._clock, self._time_zone = clock, time_zone
        self._max_tools = max_tools
        self._read_seconds = math.inf
        """The processor time that the last reading of files took."""

    async def begin(
        self,
        spec: RunSpec,
        find_workspace: Callable[[], str],
        *,
        session_id: SessionId = SessionId(""),  # noqa: B008 - a string
        chat: str = "",
        is_local: bool = False,
        in_group: bool = False,
    ) -> Callable[[], Read[RunPrompt]]:
        """Read the files of a prompt. Return the statements that read the rest and complete it.

        `session_id` and `chat` are as in `PromptScope`, `in_group`: the chat is a group.
        `find_workspace` blocks, as reading the files does: it is called in a thread. With
        `is_local` all folders are on local disks: the files are read in the event loop as long as
        there are so few that a thread would take longer, because it competes with the event loop
        for Python's lock at each system call.

        Raises:
            LarkspurError: what `find_workspace` or a capability raises.
        """
        model = self._book.usable_model(spec.provider, spec.model)
        known = self._known(delegates=spec.delegates, in_group=in_group)
        granted = [tool for tool in known if spec.profile.grants(tool.name)]
        draft = RunDraft(
            limits=self._book.limits(model),
            max_tools=self._max_tools(model),
            tools=(*granted, *CONTROL_SPECS),
            withheld=(
                *self._tools.withheld(),
                *(WithheldTool(one.name, "profile") for one in known if one not in granted),
            ),
        )
        read = partial(self._read_files, PromptScope(spec, "", session_id, chat), find_workspace)
        if is_local and self._read_seconds < _MAX_DIRECT_SECONDS:
            scope, changes = read()
        else:
            scope, changes = await run_to_completion(read)
        return partial(self._complete, scope, model, draft, changes)

    def _read_files(
        self, scope: PromptScope, find_workspace: Callable[[], str]
    ) -> tuple[PromptScope, list[DraftChange]]:
        """Return the scope with its workspace, and the capabilities' findings in files. Blocks."""
        began = time.thread_time()
        scope = scope._replace(workspace=find_workspace())
        changes = self._capabilities.contribute(scope)
        self._read_seconds = time.thread_time() - began
        return scope, changes

    def _complete(
        self, scope: PromptScope, model: str, draft: RunDraft, changes: Sequence[DraftChange]
    ) -> Read[RunPrompt]:
        spec = scope.spec
        for change in changes:
            changed = change(draft)
            draft = (yield from changed) if isinstance(changed, Generator) else changed
        system = system_prompt(
            spec.profile,
            spec.gates,
            scope.workspace,
            self._clock.now(),
            time_zone=spec.time_zone or self._time_zone,
            commands=self._command_rules(spec.policy, draft.tools),
            sections=draft.sections,
        )
        budget = message_budget(
            system,
            draft.tools,
            context_window=draft.limits.context_window,
            max_output_tokens=draft.limits.max_output_tokens,
        )
        openings: list[Opening] = []
        for open_with in draft.openings:
            opening = open_with(budget)
            budget -= text_tokens(opening.text)
            openings.append(opening)
        return RunPrompt(
            model=model,
            workspace=scope.workspace,
            system=system,
            instructions="".join(each.text for each in openings),
            tools=draft.tools,
            budget=budget,
            parts=fixed_parts(system, draft.sections, openings, draft.tools),
            problems=tuple(filter(None, (*draft.problems, self._book.doubt(model)))),
            withheld=draft.withheld,
            deferred=draft.deferred,
            rules=draft.rules,
        )

    def _known(self, *, delegates: bool, in_group: bool) -> list[ToolSpec]:
        """Return the offered tools.

        Tools that create tasks are left out if the run may not, and tools of group chats elsewhere.
        """
        left_out = frozenset[str]() if delegates else DELEGATION_TOOLS
        offered = (each for each in self._tools.specs() if in_group or not each.only_in_groups)
        return [tool for tool in offered if tool.name not in left_out]

    def _command_rules(self, policy: Policy, tools: Iterable[ToolSpec]) -> str:
        """Return the rules about commands if the run has tools for them."""
        runs_commands = any(tool.sandboxed and tool.risk == "exec" for tool in tools)
        return command_rules(policy, self._sandbox) if runs_commands else ""
