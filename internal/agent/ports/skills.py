"""Skills: know-how in folders, which the model loads when it needs it."""

from typing import NamedTuple, Protocol

LOAD_SKILL, READ_SKILL_FILE = "load_skill", "read_skill_file"
SKILL_TOOLS = frozenset({LOAD_SKILL, READ_SKILL_FILE})
"""The tools for skills. A run has them if there are skills."""


Granted = tuple[str, ...] | None
"""The names of the skills that a run may load; None for all."""


class SkillCatalogue(NamedTuple):
    """A line for every skill, bounded in size, "" if there is none.

    `problems` are sentences: which of the granted skills there are not, or are withheld, and which
    skills of the working folder no person has reviewed.
    """

    text: str
    problems: tuple[str, ...] = ()


NO_SKILLS = SkillCatalogue("")


class Skills(Protocol):
    """The skills that a person has reviewed, also those of a working folder, an absolute path.

    Each method blocks: call it in a thread.
    """

    def describe(self, workspace: str, granted: Granted) -> SkillCatalogue:
        """Return the skills that a run may load."""
        ...

    def load(self, workspace: str, name: str, offset: int, granted: Granted) -> str:
        """Return the folder, the files and the text of a skill, from a character on.

        Raises:
            ToolError: there is none, or it has changed since its review.
        """
        ...

    def read_file(
        self, workspace: str, name: str, path: str, offset: int, *, granted: Granted
    ) -> str:
        """Return the text of a file of a skill, from a character on.

        Raises:
            ToolError: there is none, it is not text, or the skill has changed since its review.
        """
        ...
