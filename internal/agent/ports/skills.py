"""Skills: know-how in folders, which the model loads when it needs it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

LOAD_SKILL, READ_SKILL_FILE, REVIEW_SKILL = "load_skill", "read_skill_file", "review_skill"
SKILL_TOOLS = frozenset({LOAD_SKILL, READ_SKILL_FILE, REVIEW_SKILL})
"""The tools for skills. A run has them if there are skills."""


Granted = tuple[str, ...] | None
"""The names of the skills that a run may load; None for all."""


def is_granted(name: str, granted: Granted) -> bool:
    """Return True if the skill of a name may be loaded; capitals do not count."""
    return granted is None or name.casefold() in {each.casefold() for each in granted}


SkillOrigin = Literal["own", "shipped", "shared", "workspace"]
SkillState = Literal["offered", "not reviewed", "changed since its review", "not usable"]


class ListedSkillFile(msgspec.Struct, frozen=True):
    """A file of a skill. `path` is relative to its folder, `size` is in bytes."""

    path: str
    size: int
    is_script: bool


class SkillSummary(msgspec.Struct, frozen=True):
    """A skill in a list. Only an `offered` one reaches the model.

    `sha256` is the hash of its folder, "" if it cannot be read. `problem` is why it is not usable;
    `warnings` are what is unusual about its `SKILL.md`. `allowed_tools` gives no right.
    """

    name: str
    description: str
    origin: SkillOrigin
    state: SkillState
    sha256: str
    problem: str
    files: list[ListedSkillFile]
    warnings: list[str]
    allowed_tools: list[str]


class InvisibleCharacter(msgspec.Struct, frozen=True):
    """A character that is not seen, or changes how others are seen. Lines count from 1."""

    path: str
    line: int
    column: int
    code: str


RuleRefusal = Literal[
    "no rule needed", "unknown tool", "too wide", "runs other code", "cannot be expressed"
]
"""Why no rule is offered: `too wide` is for every command or address, `runs other code` for an
interpreter, a wrapper or a program that is not a file of the skill."""


class RequestedTool(msgspec.Struct, frozen=True):
    """An entry of `allowed-tools`, and the rule that a person may grant for it.

    `rule` allows what the entry asks for or less; it is "" if none is offered, for the reason
    `refusal`.
    """

    entry: str
    rule: str
    refusal: RuleRefusal | Literal[""]


class SkillReviewReport(msgspec.Struct, frozen=True):
    """What a person should know of a skill; `skill.sha256` is the hash of just these files.

    `scripts` and `binary` are paths. `invisible` and `requested` are bounded. `text` is the
    beginning of `SKILL.md` with escapes for hidden characters, and `is_complete` is false if there
    is more. `lacks` are sentences on what commands do not have that its scripts need.
    """

    skill: SkillSummary
    scripts: list[str]
    binary: list[str]
    invisible: list[InvisibleCharacter]
    requested: list[RequestedTool]
    text: str
    is_complete: bool
    lacks: list[str]


class SkillReviews(Protocol):
    """All skills, for people who review them. Each method blocks: call it in a thread."""

    def within(self, workspace: str) -> "SkillReviews":
        """Return the reviews of these and a working folder's skills; the path is absolute."""
        ...

    def list_all(self) -> list[SkillSummary]:
        """Return all skills, including unusable ones."""
        ...

    def review(self, name: str) -> SkillReviewReport:
        """Return the review of a skill, for a person who decides whether the model is offered it.

        Raises:
            NotFound: there is no such skill.
            Conflict: it cannot be read, or changes meanwhile.
        """
        ...

    def check(self, name: str, sha256: str, rules: Sequence[str]) -> SkillSummary:
        """Check that the files with this hash can be decided about. Return the skill.

        Raises:
            NotFound: there is no such skill.
            Conflict: its files have another hash, it is not usable, it needs no review, or one of
                the rules is not offered for it.
        """
        ...

    def decide(self, name: str, sha256: str, *, accept: bool) -> SkillSummary:
        """Accept the files with this hash, or withdraw an acceptance. Return the skill.

        Raises:
            NotFound, Conflict: as `check` does.
            FilesUnavailable: the decision cannot be stored.
        """
        ...


class SkillCatalogue(NamedTuple):
    """A line for every skill, bounded in size, "" if there is none.

    `problems` are sentences: which of the granted skills there are not, or are withheld, and which
    skills of the working folder no person has reviewed.
    """

    text: str
    problems: tuple[str, ...] = ()


NO_SKILLS = SkillCatalogue("")


class Skills(Protocol):
    """The skills that a person has reviewed."""

    def describe(self, workspace: str, granted: Granted) -> SkillCatalogue:
        """Return the skills that a run may load, including a working folder's (an absolute path).

        Blocks: call it in a thread.
        """
        ...
