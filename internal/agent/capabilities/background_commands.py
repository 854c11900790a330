"""Background commands of runs: they end with their run unless they are kept."""

from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.endings import Departure
from internal.agent.domain.ids import RunId
from internal.agent.ports.commands import BackgroundCommands


class BackgroundCommandsCapability(Capability):
    """Ends the commands of a run that leaves this process."""

    name = "background commands"

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    async def leave(self, run_id: RunId, departure: Departure, /) -> None:
        """End the commands that are not kept; the end of a run waits until they have ended."""
        if departure in {"ended", "stopped"}:
            await self._commands.end_run(run_id)
        else:
            self._commands.request_end(run_id)
