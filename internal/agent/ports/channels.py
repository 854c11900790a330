"""What the agent offers its channels: listeners of a run."""

from typing import Protocol

from internal.agent.domain.envelope import WorkflowEventEnvelope


class EventListener(Protocol):
    """Takes the envelopes of a run, one at a time and in `seq` order."""

    async def on_event(self, envelope: WorkflowEventEnvelope, /) -> None:
        """Take one envelope. Raising is logged and costs this listener the envelope, never the run.

        Ephemeral envelopes have no `seq` and come in between, in the order of their making.
        """
        ...
