"""What a person chose for the tasks of this session: each travels with the next task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MODES = ("ask", "plan", "accept-edits")
"""Through these Shift+Tab goes."""


@dataclass
class Choices:
    """`fixed` are the options of the command line, without what stands here."""

    fixed: Mapping[str, Any]
    mode: str = MODES[0]
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    model: str | None = None
    profile: str | None = None
    plan_review: str | None = None
    """Which plans wait for the person: `always` or `off`; without a choice the settings decide."""
    chose_mode: bool = False
    """Without a choice the settings decide."""

    def next_mode(self) -> str:
        """Step to the next mode and return it."""
        at = MODES.index(self.mode) if self.mode in MODES else -1
        return self.take_mode(MODES[(at + 1) % len(MODES)])

    def take_mode(self, mode: str) -> str:
        """Choose a mode and return it."""
        self.mode, self.chose_mode = mode, True
        return mode

    def options(self) -> dict[str, Any]:
        """Return the options of a task, as `POST /api/tasks` takes them."""
        chosen = {
            "permission_mode": self.mode if self.chose_mode else None,
            "allow": list(self.allow),
            "deny": list(self.deny),
            "model": self.model,
            "plan_review": self.plan_review,
        }
        return {**self.fixed, **{name: value for name, value in chosen.items() if value}}
