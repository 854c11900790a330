"""Instructions: standing texts that a model follows besides its profile, and where they are kept.

They grant no permission and configure nothing.
"""

from typing import Literal, NamedTuple, Protocol

MAX_TEXT_BYTES = 32 * 1024
"""Bytes of one text that the model gets, as UTF-8. At most these are read of a file."""

FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
"""The files of a folder; the first one that exists is used."""

InstructionSource = Literal["owner", "chat", "folder"]


class Instruction(NamedTuple):
    """One text, as it was read: not cleaned and not escaped.

    `name` is the file, relative to the folder that its search began in; "" for the text of a chat.
    `unread` is the number of bytes of the file that were not read.
    """

    source: InstructionSource
    text: str
    name: str = ""
    unread: int = 0


class FoundInstructions(NamedTuple):
    """The texts that apply, the most general first, and a sentence on each file that is ignored."""

    texts: tuple[Instruction, ...] = ()
    problems: tuple[str, ...] = ()

    def with_chat(self, text: str) -> "FoundInstructions":
        """Return these with the text of a chat, between those of the owner and of the folder."""
        owner = tuple(each for each in self.texts if each.source == "owner")
        others = self.texts[len(owner) :]
        return self._replace(texts=(*owner, Instruction("chat", text), *others))


class InstructionFiles(Protocol):
    """The instruction files of the owner and of a folder."""

    def read(self, workspace: str, /) -> FoundInstructions:
        """Return the owner's file, then those from the repository's root down to the workspace.

        A missing file is no problem. At most the bound of a file is read. Blocks: call it in a
        thread.
        """
        ...
