"""The tools for skills, and the catalogue of the system prompt."""

import asyncio
from typing import Annotated, Any

import msgspec

from internal.agent.domain.errors import ToolError
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.skills import (
    LOAD_SKILL,
    READ_SKILL_FILE,
    REVIEW_SKILL,
    Granted,
    SkillCatalogue,
    SkillReviews,
    is_granted,
)
from internal.agent.ports.tools import (
    CallContext,
    ToolOutcome,
    WithheldTool,
    reported_to_model,
)
from internal.i18n.language import Language
from internal.normal_forms.json_schema import type_schema
from internal.skills.library import SkillLibrary
from internal.skills.presentation import (
    describe_catalogue,
    describe_review,
    describe_withheld,
    find_problems,
    load_skill_text,
    read_skill_file_text,
)

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The skill.")]
_Offset = Annotated[int, msgspec.Meta(ge=0, description="Begin after so many characters.")]
_Path = Annotated[
    str, msgspec.Meta(min_length=1, max_length=1_000, description="A path in the skill.")
]

_Sha256 = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="The hash that load_skill reported.")
]


class _Load(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    offset: _Offset = 0


class _ReadFile(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    path: _Path
    offset: _Offset = 0


class _Review(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    sha256: _Sha256


_ARGUMENTS: dict[str, type[_Load | _ReadFile | _Review]] = {
    LOAD_SKILL: _Load,
    READ_SKILL_FILE: _ReadFile,
    REVIEW_SKILL: _Review,
}
_DESCRIPTIONS = {
    LOAD_SKILL: "Return the text of a skill, the list of its files and its folder, which commands"
    " can read: run its scripts from there.",
    READ_SKILL_FILE: "Return the text of a file of a skill.",
    REVIEW_SKILL: "Ask the owner to review a withheld skill. Returns its text after a yes.",
}
_TITLES: dict[str, dict[Language, str]] = {
    LOAD_SKILL: {"en": "Load a skill", "zh": "加载技能"},
    READ_SKILL_FILE: {"en": "Read a file of a skill", "zh": "读取技能的文件"},
    REVIEW_SKILL: {"en": "Review a skill", "zh": "审阅技能"},
}


class ReviewedSkills:
    """The skills of a library that are offered. Implements `Skills`."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library

    def describe(self, workspace: str, granted: Granted) -> SkillCatalogue:
        """Return the skills that a run may load; see the port."""
        found = self._library.within(workspace).skills()
        own = [skill for skill in found if is_granted(skill.name, granted)]
        catalogue = describe_catalogue([skill for skill in own if skill.state == "offered"])
        text = "\n".join(filter(None, (catalogue, describe_withheld(own))))
        return SkillCatalogue(text, find_problems(found, granted))


class SkillTools:
    """The tools for skills. Implements `ToolSource`."""

    def __init__(self, library: SkillLibrary, reviews: SkillReviews) -> None:
        self._library, self._reviews = library, reviews

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications."""
        return SKILL_SPECS

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return (): the skills are reviewed, not their tools."""
        return ()

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call.

        Raises:
            ToolError: an argument is wrong, or there is no such skill or file.
        """
        wanted = _parse(name, arguments)
        return ToolOutcome(await asyncio.to_thread(self._read, wanted, context))

    def _read(self, wanted: _Load | _ReadFile | _Review, context: CallContext) -> str:
        library, granted = self._library.within(context.workspace), context.spec.skills
        match wanted:
            case _Load(name, offset):
                return load_skill_text(library, name, offset, granted=granted)
            case _ReadFile(name, path, offset):
                return read_skill_file_text(library, name, path, offset, granted=granted)
            case _Review(name, sha256):
                with reported_to_model():
                    self._reviews.within(context.workspace).decide(name, sha256, accept=True)
                return load_skill_text(library, name, granted=granted)

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return the review of a skill for the owner; "" for the other tools.

        Raises:
            ToolError: an argument is wrong, or the skill cannot be reviewed.
        """
        wanted = _parse(name, arguments)
        if not isinstance(wanted, _Review):
            return ""
        return await asyncio.to_thread(self._preview_review, wanted, context)

    def _preview_review(self, wanted: _Review, context: CallContext) -> str:
        reviews = self._reviews.within(context.workspace)
        with reported_to_model():
            report = reviews.review(wanted.name)
            reviews.check(wanted.name, wanted.sha256, ())
        if not is_granted(report.skill.name, context.spec.skills):
            raise ToolError(f"this run may not load the skill {report.skill.name}")
        if report.skill.state == "offered":
            raise ToolError(f"the skill {report.skill.name} is reviewed: call {LOAD_SKILL}")
        return describe_review(report)


def _parse(name: str, arguments: dict[str, Any]) -> _Load | _ReadFile | _Review:
    try:
        return msgspec.convert(arguments, _ARGUMENTS[name], strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"{name}: {error}") from error


def _spec(name: str) -> ToolSpec:
    schema = type_schema(_ARGUMENTS[name])["$defs"][_ARGUMENTS[name].__name__]
    schema.pop("title", None)
    return ToolSpec(
        name=name,
        description=_DESCRIPTIONS[name],
        parameters=schema,
        risk="read",
        idempotent=True,
        retained=True,
        trusts="name" if name == REVIEW_SKILL else "",
        title=_TITLES[name],
    )


SKILL_SPECS = tuple(map(_spec, _ARGUMENTS))
"""The specifications of the tools."""
