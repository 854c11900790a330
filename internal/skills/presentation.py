"""Skills as the model reads them: the catalogue of a system prompt, a whole skill, one file."""

import re
from collections.abc import Sequence

from internal.agent.domain.errors import LarkspurError, ToolError
from internal.agent.domain.text import text_tokens, truncate_line
from internal.agent.ports.skills import (
    REVIEW_SKILL,
    Granted,
    SkillOrigin,
    SkillReviewReport,
    is_granted,
)
from internal.agent.ports.tools import reported_to_model
from internal.settings.messages import nearest, plain
from internal.skills.library import Skill, SkillLibrary
from internal.skills.skill_folder import read_contents

MAX_DESCRIPTION_CHARS = 200
MAX_CATALOGUE_TOKENS = 3_000
MAX_TEXT_CHARS = 30_000
_MAX_LISTED_FILES = 100
_MAX_LISTED_WITHHELD = 20
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ORIGINS: dict[SkillOrigin, str] = {
    "own": "home folder",
    "shipped": "shipped",
    "shared": "folder of the settings",
    "workspace": "working folder",
}


def describe_catalogue(skills: Sequence[Skill], max_tokens: int = MAX_CATALOGUE_TOKENS) -> str:
    """Return a line for every skill, "" without skills; skills beyond the budget are counted."""
    lines: list[str] = []
    for skill in skills:
        line = f"- {skill.name}: {truncate_line(skill.description, MAX_DESCRIPTION_CHARS)}"
        max_tokens -= text_tokens(line)
        if max_tokens < 0:
            lines.append(f"and {len(skills) - len(lines)} more: find them with load_skill")
            break
        lines.append(line)
    return "\n".join(lines)


def describe_withheld(skills: Sequence[Skill]) -> str:
    """Return a line with the names of the skills that the owner could review, "" without any.

    Nothing else of them reaches the model, and no name that could contain a sentence.
    """
    names = [each.name for each in skills if is_withheld(each) and _PLAIN_NAME.fullmatch(each.name)]
    if not names:
        return ""
    listed = ", ".join(names[:_MAX_LISTED_WITHHELD])
    return f"Withheld until the owner reviews them; load_skill says how to ask: {listed}"


def is_withheld(skill: Skill) -> bool:
    """Return True if a skill waits for a review."""
    return skill.state not in {"offered", "not usable"}


def describe_review(report: SkillReviewReport) -> str:
    """Return the text that a person reads before the decision about a skill, as a diff."""
    skill = report.skill
    marks = [
        f"{each.path}, line {each.line}, column {each.column}: {each.code}"
        for each in report.invisible[:_MAX_LISTED_WITHHELD]
    ]
    scripts = set(report.scripts)
    files = [
        f"  {each.path} ({each.size:,} bytes{', script' if each.path in scripts else ''})"
        for each in skill.files[:_MAX_LISTED_FILES]
    ]
    more = len(skill.files) - len(files)
    lines = (
        f"Skill {skill.name} ({_ORIGINS[skill.origin]}): {skill.state}",
        f"If this is cut, read all of it first: larkspur skills review {skill.name}",
        f"Files: {len(skill.files)}",
        *files,
        *([f"  and {more} more"] if more else []),
        *(f"Not text: {path}" for path in report.binary[:_MAX_LISTED_WITHHELD]),
        *(f"Invisible character: {mark}" for mark in marks),
        *(f"Unusual: {warning}" for warning in skill.warnings),
        *(f"Lacking: {lack}" for lack in report.lacks),
        *(
            [f"Asks for (grants nothing): {', '.join(skill.allowed_tools)}"]
            * bool(skill.allowed_tools)
        ),
        "",
        f"SKILL.md{'' if report.is_complete else ' (its beginning)'}:",
        report.text,
    )
    # as a diff, in which lines with a space are neither added nor removed
    return "".join(f" {line}".rstrip() + "\n" for line in "\n".join(lines).split("\n"))


def find_problems(skills: Sequence[Skill], granted: Granted) -> tuple[str, ...]:
    """Return a sentence for each granted name without a skill that is offered.

    If all are granted, return a sentence about the skills of the working folder that wait for a
    review.
    """
    if granted is None:
        waiting = [
            plain(skill.name)
            for skill in skills
            if skill.origin == "workspace" and is_withheld(skill)
        ]
        names = truncate_line(", ".join(waiting), 500)
        sentence = f"Skills of this folder that nobody has reviewed are not used: {names}."
        return (f"{sentence} Review one with: larkspur skills review NAME",) if waiting else ()
    problems: list[str] = []
    for name in granted:
        named = [skill for skill in skills if skill.name.casefold() == name.casefold()]
        if not named:
            hint = nearest(name, [skill.name for skill in skills])
            problems.append(f"There is no skill {plain(name)}{hint}")
        elif all(skill.state != "offered" for skill in named):
            problems.append(f"The skill {named[0].name} is withheld: {named[0].state}.")
    return tuple(problems)


def load_skill_text(
    library: SkillLibrary, name: str, offset: int = 0, *, granted: Granted = None
) -> str:
    """Return the folder, the files and the text of a skill that is offered.

    Raises:
        ToolError: there is none, or it has changed since its review.
    """
    skill = _offered(library, name, granted)
    files = [each.path for each in skill.entries]
    listed = ", ".join(files[:_MAX_LISTED_FILES])
    more = f" and {len(files) - _MAX_LISTED_FILES} more" if len(files) > _MAX_LISTED_FILES else ""
    body = skill.file.body if skill.file else ""
    return f"Folder: {skill.folder}\nFiles: {listed}{more}\n\n{_section(body, offset)}"


def read_skill_file_text(
    library: SkillLibrary, name: str, path: str, offset: int = 0, *, granted: Granted = None
) -> str:
    """Return the text of a file of a skill that is offered.

    Raises:
        ToolError: there is none, it is not text, or the skill has changed since its review.
    """
    skill = _offered(library, name, granted)
    with reported_to_model():
        contents = read_contents(skill.folder, path, boundary=skill.boundary)
    if contents.sha256 != skill.sha256:
        raise ToolError(f"the skill {skill.name} changes while it is read; try again")
    if contents.kept is None:
        raise ToolError(f"the skill {skill.name} has no file {path[:200]!r}")
    try:
        return _section(contents.kept.decode("utf-8-sig"), offset)
    except UnicodeDecodeError:
        raise ToolError(f"{path[:200]} is not text") from None


def _offered(library: SkillLibrary, name: str, granted: Granted) -> Skill:
    try:
        skill = library.find(name)
    except LarkspurError:
        skill = None
    if skill is None or not is_granted(skill.name, granted):
        offered = (each.name for each in library.offered() if is_granted(each.name, granted))
        names = truncate_line(", ".join(offered), 2_000)
        raise ToolError(f"there is no skill {name[:100]!r}; there are: {names}")
    if skill.state != "offered":
        sentence = f"the skill {skill.name} is withheld: {skill.problem or skill.state}"
        if is_withheld(skill):
            sentence += f"; ask the owner with {REVIEW_SKILL}, sha256 {skill.sha256}"
        raise ToolError(sentence)
    return skill


def _section(text: str, offset: int) -> str:
    shown = text[offset : offset + MAX_TEXT_CHARS]
    remaining = len(text) - offset - len(shown)
    if remaining <= 0:
        return shown
    return f"{shown}\n… {remaining:,} more characters, from offset {offset + len(shown)} on …"
