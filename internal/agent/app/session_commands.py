"""The background commands of sessions, for people who may see the sessions."""

import asyncio

from internal.agent.app.queries import Queries
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import Principal
from internal.agent.ports.commands import BackgroundCommand, BackgroundCommands, PrintedOutput


class SessionCommands:
    """Lists, reads and stops the background commands of a session.

    All methods raise NotFound if the session or the command does not exist, or belongs to another
    person.
    """

    def __init__(self, queries: Queries, commands: BackgroundCommands) -> None:
        self._queries, self._commands = queries, commands

    async def list_all(
        self, session_id: SessionId, principal: Principal
    ) -> list[BackgroundCommand]:
        """Return the background commands of a session in this process, oldest first."""
        await self._queries.session(session_id, principal)
        return await asyncio.to_thread(self._commands.of_session, session_id)

    async def read(
        self, session_id: SessionId, command_id: str, principal: Principal
    ) -> PrintedOutput:
        """Return the end of the output of a background command, also after its end."""
        await self._queries.session(session_id, principal)
        return await asyncio.to_thread(self._commands.read_last, session_id, command_id)

    async def stop(
        self, session_id: SessionId, command_id: str, principal: Principal
    ) -> BackgroundCommand:
        """End a background command and all that it started; one that has ended stays as it is."""
        await self._queries.session(session_id, principal)
        return await self._commands.stop(session_id, command_id)
