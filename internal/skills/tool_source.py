"""The tools `load_skill` and `read_skill_file`, and the catalogue of the system prompt."""

import asyncio
from typing import Annotated, Any

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.skills import (
    LOAD_SKILL,
    READ_SKILL_FILE,
    Granted,
    SkillCatalogue,
    is_granted,
)
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.i18n.language import Language
from internal.skills.library import SkillLibrary
from internal.skills.presentation import (
    describe_catalogue,
    find_problems,
    load_skill_text,
    read_skill_file_text,
)

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The skill.")]
_Offset = Annotated[int, msgspec.Meta(ge=0, description="Begin after so many characters.")]
_Path = Annotated[
    str, msgspec.Meta(min_length=1, max_length=1_000, description="A path in the skill.")
]


class _Load(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    offset: _Offset = 0


class _ReadFile(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    path: _Path
    offset: _Offset = 0


_ARGUMENTS: dict[str, type[_Load | _ReadFile]] = {LOAD_SKILL: _Load, READ_SKILL_FILE: _ReadFile}
_DESCRIPTIONS = {
    LOAD_SKILL: "Return the text of a skill, the list of its files and its folder, which commands"
    " can read: run its scripts from there.",
    READ_SKILL_FILE: "Return the text of a file of a skill.",
}
_TITLES: dict[str, dict[Language, str]] = {
    LOAD_SKILL: {"en": "Load a skill", "zh": "加载技能"},
    READ_SKILL_FILE: {"en": "Read a file of a skill", "zh": "读取技能的文件"},
}


class ReviewedSkills:
    """The skills of a library that are offered. Implements `Skills`."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    def describe(self, workspace: str, granted: Granted) -> SkillCatalogue:
        """Return the skills that a run may load; see the port."""
        found = self._library.within(workspace).skills()
        offered = [skill for skill in found if skill.state == "offered"]
        text = describe_catalogue([skill for skill in offered if is_granted(skill.name, granted)])
        return SkillCatalogue(text, find_problems(found, granted))


class SkillTools:
    """The tools for skills. Implements `ToolSource`."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications."""
        return SKILL_SPECS

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call.

        Raises:
            ToolError: an argument is wrong, or there is no such skill or file.
        """
        wanted = _parse(name, arguments)
        return ToolOutcome(await asyncio.to_thread(self._read, wanted, context))

    def _read(self, wanted: _Load | _ReadFile, context: CallContext) -> str:
        library, granted = self._library.within(context.workspace), context.skills
        if isinstance(wanted, _Load):
            return load_skill_text(library, wanted.name, wanted.offset, granted=granted)
        return read_skill_file_text(
            library, wanted.name, wanted.path, wanted.offset, granted=granted
        )

    async def preview(self, _context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return "": nothing is changed.

        Raises:
            ToolError: an argument is wrong.
        """
        _parse(name, arguments)
        return ""


def _parse(name: str, arguments: dict[str, Any]) -> _Load | _ReadFile:
    try:
        return msgspec.convert(arguments, _ARGUMENTS[name], strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"{name}: {error}") from error


def _spec(name: str) -> ToolSpec:
    schema = msgspec.json.schema(_ARGUMENTS[name])["$defs"][_ARGUMENTS[name].__name__]
    schema.pop("title", None)
    return ToolSpec(
        name=name,
        description=_DESCRIPTIONS[name],
        parameters=schema,
        risk="read",
        idempotent=True,
        retained=True,
        title=_TITLES[name],
    )


SKILL_SPECS = tuple(map(_spec, _ARGUMENTS))
"""The specifications of the tools."""
