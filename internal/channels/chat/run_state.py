"""What a run does, folded from its events, and how that is told in words. Pure."""

from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.events.types import (
    LifecycleUpdated,
    PlanUpdated,
    ResultCancelled,
    ResultFinal,
    ToolCompleted,
    ToolStarted,
)
from internal.agent.domain.plans import PlanStep
from internal.agent.domain.text import truncate_line
from internal.i18n.chat import ChatPhrases

Phase = Literal["queued", "working", "waiting", "done", "failed", "cancelled"]
TERMINAL = frozenset({ResultFinal.name, ResultCancelled.name})
COLOURS: dict[Phase, str] = {
    "queued": "grey",
    "working": "blue",
    "waiting": "orange",
    "done": "green",
    "failed": "red",
    "cancelled": "grey",
}
_MOST_LINES, _LONGEST_LINE = 12, 160
_BOXES = {
    "pending": "☐",
    "in_progress": "▶",
    "completed": "☑",
    "failed": "✗",
    "skipped": "-",
}
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#|~"})


class _Payload(msgspec.Struct):
    status: str = ""
    steps: tuple[PlanStep, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    error: str | None = None


class _Envelope(msgspec.Struct):
    event: str
    timestamp: str
    payload: _Payload


_decode = msgspec.json.Decoder(_Envelope).decode
_READ = TERMINAL | {
    each.name for each in (LifecycleUpdated, PlanUpdated, ToolStarted, ToolCompleted)
}


class _Tool(NamedTuple):
    name: str
    state: Literal["running", "done", "failed"]


class Work:
    """The state of one run as people are told of it."""

    def __init__(self) -> None:
        self.phase: Phase = "queued"
        self.over = False
        self._steps: tuple[PlanStep, ...] = ()
        self._tools: dict[str, _Tool] = {}

    @property
    def still(self) -> bool:
        """Say whether nothing happens any more, or nothing until a person answers."""
        return self.over or self.phase == "waiting"

    @property
    def worth_showing(self) -> bool:
        """Say whether there is more to tell than that it works."""
        return bool(self._steps or self._tools)

    def take(self, event: str, envelope: bytes) -> bool:
        """Take a durable event; say whether it changed anything."""
        if event not in _READ:
            return False
        told = _decode(envelope).payload
        match event:
            case LifecycleUpdated.name:
                self._move(told.status)
            case PlanUpdated.name:
                self._steps = told.steps
            case ToolStarted.name:
                self._tools[told.call_id] = _Tool(told.tool_name, "running")
            case ToolCompleted.name:
                state: Literal["done", "failed"] = "failed" if told.error else "done"
                self._tools[told.call_id] = _Tool(told.tool_name, state)
            case _:
                self.over = True
        return True

    def title(self, words: ChatPhrases) -> str:
        """Return what the run is at, in a word or two."""
        return words(f"progress_{self.phase}")

    def lines(self, words: ChatPhrases) -> list[str]:
        """Return the plan's steps, then what tools do, the newest last."""
        steps = [
            _BOXES[step.status]
            + " "
            + truncate_line(step.description, _LONGEST_LINE).translate(_MARKDOWN)
            for step in self._steps
        ]
        marks = {"running": "…", "done": "✓", "failed": "✗"}
        tools = [f"{marks[tool.state]} {words.tool(tool.name)}" for tool in self._tools.values()]
        room = max(_MOST_LINES - len(steps), 3)
        if len(tools) > room:
            tools = [words("progress_more", count=len(tools) - room), *tools[-room:]]
        gap = [""] if steps and tools else []
        return [*steps[:40], *gap, *tools]

    def _move(self, status: str) -> None:
        phases: dict[str, Phase] = {
            "queued": "queued",
            "running": "working",
            "waiting": "waiting",
            "completed": "done",
            "failed": "failed",
            "cancelled": "cancelled",
        }
        self.phase = phases.get(status, self.phase)
