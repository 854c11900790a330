"""The text so far of replies and tool calls that are still running."""

import msgspec

from internal.agent.domain.events.envelope import WorkflowEventEnvelope, wrap_ephemeral
from internal.agent.domain.events.types import (
    NodeFailed,
    OutputDelta,
    OutputSummary,
    Partial,
    ToolCompleted,
    ToolProgress,
)
from internal.agent.domain.ids import RunId, SessionId

MAX_CHARACTERS = 1_000_000
"""Of a longer text only the end is kept."""


class _Output(msgspec.Struct):
    k: int = 0
    size: int = 0
    pieces: list[str] = msgspec.field(default_factory=list)

    def add(self, k: int, text: str) -> None:
        self.k = k
        self.size += len(text)
        self.pieces.append(text)
        if self.size > 2 * MAX_CHARACTERS:
            self.pieces = [self.text()]
            self.size = len(self.pieces[0])

    def text(self) -> str:
        return "".join(self.pieces)[-MAX_CHARACTERS:]


class PartialOutputs:
    """The unfinished outputs of all runs of this process, collected from their events."""

    def __init__(self) -> None:
        self._runs: dict[RunId, tuple[WorkflowEventEnvelope, dict[str, _Output]]] = {}
        """The first envelope of each run with its outputs, by node."""

    def add(self, envelope: WorkflowEventEnvelope) -> None:
        """Update the outputs with one event."""
        match envelope.payload:
            case OutputDelta() | ToolProgress() as piece:
                self._node(envelope, piece.node_id).add(piece.k, piece.text)
            case Partial() as partial:
                node = self._node(envelope, partial.node_id)
                node.pieces, node.size, node.k = [partial.text], len(partial.text), partial.k
            case OutputSummary() | NodeFailed() as end:
                self._close(envelope.run_id, end.node_id)
            case ToolCompleted() as end:
                self._close(envelope.run_id, end.call_id)
            case event if event.terminal:
                self._runs.pop(envelope.run_id, None)
            case _:
                pass

    def partials(self, timestamp: str) -> list[WorkflowEventEnvelope]:
        """Return the text so far of every unfinished output, as events of that time (RFC 3339)."""
        return [
            wrap_ephemeral(
                envelope, Partial(node_id=node_id, k=node.k, text=node.text()), timestamp
            )
            for envelope, nodes in self._runs.values()
            for node_id, node in nodes.items()
        ]

    def forget(self, run_id: RunId) -> None:
        """Discard the outputs of a run that left this process."""
        self._runs.pop(run_id, None)

    def forget_session(self, session_id: SessionId) -> None:
        """Discard the outputs of the runs of a session."""
        runs = self._runs.items()
        for run_id in [run for run, (first, _) in runs if first.session_id == session_id]:
            del self._runs[run_id]

    def _node(self, envelope: WorkflowEventEnvelope, node_id: str) -> _Output:
        if envelope.run_id not in self._runs:
            self._runs[envelope.run_id] = (envelope, {})
        return self._runs[envelope.run_id][1].setdefault(node_id, _Output())

    def _close(self, run_id: RunId, node_id: str) -> None:
        if run_id not in self._runs:
            return
        nodes = self._runs[run_id][1]
        # the reasoning ends with its reply
        for ended in (node_id, node_id.removesuffix(":say") + ":think"):
            nodes.pop(ended, None)
        if not nodes:
            del self._runs[run_id]
