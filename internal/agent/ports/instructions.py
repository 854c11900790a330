"""Instructions: standing texts that a model follows besides its profile, and their storage.

They grant no permission and configure nothing.
"""

from typing import Literal, NamedTuple, Protocol

MAX_TEXT_BYTES = 32 * 1024
"""Bytes of one text that the model gets, as UTF-8. At most these are read of a file."""

FILE_NAMES = ("AGENTS.md", "CLAUDE.md")
"""The files of a folder; the first one that exists is used."""

InstructionSource = Literal["owner", "chat", "folder", "caller"]


class Instruction(NamedTuple):
    """One text, as it was read: not cleaned and not escaped.

    `name` is the file, relative to the folder that its search began in; "" for the text of a chat
    or of the program that submits the task, its `caller`.
    `unread` is the number of bytes of the file that were not read.
    """

    source: InstructionSource
    text: str
    name: str = ""
    unread: int = 0


IgnoreReason = Literal["link", "no_file", "unreadable", "protected", "written", "no_folder"]


class IgnoredFile(NamedTuple):
    """A file that is not followed; `reason` "no_folder" is the whole folder.

    `name` has the form of an instruction's name, without invisible characters. The sentence is for
    the owner: it may name paths of the machine.
    """

    source: InstructionSource
    name: str
    reason: IgnoreReason
    sentence: str


class FoundInstructions(NamedTuple):
    """The texts that apply, the most general first, and the files that are ignored."""

    texts: tuple[Instruction, ...] = ()
    ignored: tuple[IgnoredFile, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence on each file that is ignored."""
        return tuple(each.sentence for each in self.ignored)

    def with_chat(self, text: str) -> "FoundInstructions":
        """Return these with the text of a chat between the owner's texts and the folder's."""
        owner = tuple(each for each in self.texts if each.source == "owner")
        others = self.texts[len(owner) :]
        return self._replace(texts=(*owner, Instruction("chat", text), *others))

    def with_caller(self, text: str) -> "FoundInstructions":
        """Return these with the text of the program that submits the task, as the last one."""
        if not text:
            return self
        return self._replace(texts=(*self.texts, Instruction("caller", text)))


class InstructionFiles(Protocol):
    """The instruction files of the owner and of a folder."""

    def read(self, workspace: str | None, /) -> FoundInstructions:
        """Return the owner's file, then the files from the repository's root down to the workspace.

        Without a workspace it is only the owner's file. A missing file is not a problem. At most
        the bound of a file is read. Blocks: call it in a thread.
        """
        ...
