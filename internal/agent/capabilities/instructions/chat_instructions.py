"""The instructions that apply in a chat, as its people see them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from internal.agent.capabilities.instructions.capability import InstructionBlock, instruction_blocks
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Channel
from internal.agent.ports.instructions import IgnoredFile, InstructionFiles
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores


class AppliedInstructions(NamedTuple):
    """The texts that apply, the most general first, and the files that are ignored."""

    blocks: Sequence[InstructionBlock]
    ignored: Sequence[IgnoredFile]


class ChatInstructions:
    """Finds the instructions of chats.

    Args:
        database: has the current session of each chat.
        stores: its tables.
        files: reads instruction files.
        folder: returns the folder of a session, which need not exist.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        files: InstructionFiles,
        folder: Callable[[SessionId], str],
    ) -> None:
        self._database, self._stores = database, stores
        self._files, self._folder = files, folder

    async def find(
        self, channel: Channel, scope: str, *, workspace: str, text: str
    ) -> AppliedInstructions:
        """Return the instructions for the next task of a conversation.

        `workspace` is the folder that the settings name, "" for the folder of the session; `text`
        is the text of the chat. For a small context window the model may get less of each text.
        """
        folder: str | None = workspace
        if not workspace:
            current = partial(self._stores.sessions.get_current, channel, scope)
            session = await self._database.read(current)
            folder = None if session is None else self._folder(session.id)
        found = await asyncio.to_thread(self._files.read, folder)
        blocks = await asyncio.to_thread(instruction_blocks, found.with_chat(text).texts)
        # the folder of a session is created by its first run
        ignored = [each for each in found.ignored if each.reason != "no_folder"]
        return AppliedInstructions(blocks, ignored)
