"""The draft of a run: its prompt, tools and rules while capabilities add to them."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import RunSpec
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import ContextPart, ContextPartKind
from internal.agent.ports.llm import ModelLimits
from internal.agent.ports.tools import WithheldTool
from internal.agent.store.database import Read


class PromptScope(NamedTuple):
    """The task whose prompt is built, and its workspace, an absolute path.

    `chat` is the name of its chat across channels, "" without one. Without a session it is a prompt
    to look at.
    """

    spec: RunSpec
    workspace: str
    session_id: SessionId = SessionId("")
    chat: str = ""


class PromptSection(NamedTuple):
    """A section of the system prompt: `text`, which counts as a part of the kind, and its intro."""

    kind: ContextPartKind
    intro: str
    text: str


class Opening(NamedTuple):
    """The beginning of the first user message of every request, with its context parts."""

    text: str = ""
    parts: tuple[ContextPart, ...] = ()


class RunDraft(msgspec.Struct, frozen=True):
    """The parts of a run that its capabilities add to, in their order.

    `limits` and `max_tools` are those of requests to its model. `tools` are in every request,
    `deferred` in none, and `withheld` exist without being offered. `openings` return the beginnings
    of a conversation for which so many tokens are left. `rules` allow calls. `problems` are
    sentences for people.
    """

    limits: ModelLimits
    max_tools: int
    tools: tuple[ToolSpec, ...]
    withheld: tuple[WithheldTool, ...] = ()
    deferred: tuple[ToolSpec, ...] = ()
    sections: tuple[PromptSection, ...] = ()
    openings: tuple[Callable[[int], Opening], ...] = ()
    rules: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def without_tools(self, names: Collection[str]) -> "RunDraft":
        """Return the draft as if these tools did not exist."""
        tools = tuple(each for each in self.tools if each.name not in names)
        withheld = tuple(each for each in self.withheld if each.name not in names)
        return msgspec.structs.replace(self, tools=tools, withheld=withheld)


DraftChange = Callable[[RunDraft], RunDraft | Read[RunDraft]]
"""Returns a draft with the additions of a capability. It is pure, and may be called again.

One that needs stored values is a generator of statements, in one transaction with all others.
"""
