"""What the model may call: a tool's specification, frozen in prepare and stored with the Turn."""

from typing import Any

import msgspec

from internal.agent.domain.permissions.policy import Risk


class ToolSpec(msgspec.Struct, frozen=True):
    """A callable as the model sees it. `parameters` is a JSON Schema object.

    An `idempotent` call may be run again when nobody knows whether it ran.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    risk: Risk
    idempotent: bool = False
    timeout_seconds: float | None = None
