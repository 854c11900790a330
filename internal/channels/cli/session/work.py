"""What is at work in a session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RunState:
    """A run that has not ended."""

    task_id: str
    status: str
    since: float
    """When it began to run, in seconds since 1970."""
    tokens: int = 0
    thinking: bool = False
    tools: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Calls under way, by id."""
    progress: str = ""
