"""Skills: know-how in folders, which the model loads when it needs it."""

from typing import Protocol

LOAD_SKILL, READ_SKILL_FILE = "load_skill", "read_skill_file"
SKILL_TOOLS = frozenset({LOAD_SKILL, READ_SKILL_FILE})
"""The tools for skills. A run has them if there are skills."""


class Skills(Protocol):
    """The skills that a person has reviewed. Each method blocks: call it in a thread."""

    def describe(self) -> str:
        """Return a line for every skill, bounded in size; "" if there is none."""
        ...

    def load(self, name: str, offset: int) -> str:
        """Return the folder, the files and the text of a skill, from a character on.

        Raises:
            ToolError: there is none, or it has changed since its review.
        """
        ...

    def read_file(self, name: str, path: str, offset: int) -> str:
        """Return the text of a file of a skill, from a character on.

        Raises:
            ToolError: there is none, it is not text, or the skill has changed since its review.
        """
        ...
