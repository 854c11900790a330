"""Diagnostics: events for whoever wants to know why a run went as it did."""

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from internal.agent.domain.event import Event, NodeKind


class DiagnosticError(Event, frozen=True, kw_only=True):
    """Something went wrong, or a gate corrected the model, and the run went on."""

    name: ClassVar[str] = "workflow.diagnostic.error"
    inner: ClassVar[bool] = True
    phase: str
    error: str
    recoverable: bool = True
    call_id: str | UnsetType = UNSET

    def node(self) -> tuple[str, NodeKind]:
        """What the diagnosis is about."""
        return self.phase, "diagnostic"


class ContextCompression(Event, frozen=True, kw_only=True):
    """Older exchanges were left out of what the model is sent. Tokens are estimates."""

    name: ClassVar[str] = "workflow.diagnostic.context_compression"
    inner: ClassVar[bool] = True
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    reason: Literal["window", "provider_refused"]

    def node(self) -> tuple[str, NodeKind]:
        """The context."""
        return "context", "diagnostic"


class ContextSnapshot(Event, frozen=True, kw_only=True):
    """What a run began with: counts and a hash, never the messages themselves."""

    name: ClassVar[str] = "workflow.diagnostic.context_snapshot"
    inner: ClassVar[bool] = True
    messages: int
    tools: int
    estimated_tokens: int
    sha256: str

    def node(self) -> tuple[str, NodeKind]:
        """The context."""
        return "context", "diagnostic"
