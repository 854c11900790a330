"""The skills and MCP servers of an installation."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from internal.agent.domain.errors import LarkspurError
from internal.agent.domain.permissions.rules import Rule, parse_rule, split_rule
from internal.agent.domain.permissions.targets import NETWORK
from internal.config.loader import Loaded
from internal.mcp.definition_files import DefinitionFiles
from internal.mcp.login.token_file import TokenFile
from internal.mcp.pins import McpPins
from internal.mcp.servers import McpServers
from internal.sandbox.selection import path_of_commands
from internal.settings.types import ConfigError
from internal.skills.library import SkillLibrary
from internal.skills.library import shipped_folder as shipped_skills
from internal.skills.pinned_reviews import PinnedSkillReviews
from internal.skills.pins import SkillPins
from internal.skills.script_needs import CommandMeans, normal_name
from internal.skills.skill_places import SkillPlace, linked_folders
from larkspur.task_defaults import TOOL_SPECS
from larkspur.version import VERSION

_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*")

SKILLS_FOLDER = "skills"
"""The folder of the owner's skills in the home folder."""


def skill_places(loaded: Loaded) -> list[SkillPlace]:
    """Return the folders with skills: the owner's, the shipped one, and the configured ones."""
    return [
        SkillPlace(loaded.home / SKILLS_FOLDER, "own"),
        SkillPlace(shipped_skills(), "shipped"),
        *(
            SkillPlace(folder, "shared", is_expected=True)
            for folder in loaded.settings.skills.paths
        ),
    ]


def skill_folders(loaded: Loaded) -> list[Path]:
    """Return the folders that commands may read to run the scripts of skills.

    They are the folders with skills, and the current targets of links in them.
    """
    places = skill_places(loaded)
    linked = (folder for place in places for folder in linked_folders(place))
    return [*(place.folder for place in places), *linked]


def open_skills(loaded: Loaded) -> SkillLibrary:
    """Open the skills of all places; the owner's take precedence."""
    reserved = [spec.name for spec in TOOL_SPECS]
    return SkillLibrary(skill_places(loaded), reserved, SkillPins(loaded.home).get)


def open_skill_reviews(loaded: Loaded, skills: SkillLibrary) -> PinnedSkillReviews:
    """Return the reviews of skills, with the means of commands by the settings."""
    return PinnedSkillReviews(skills, SkillPins(loaded.home), TOOL_SPECS, _command_means(loaded))


def _command_means(loaded: Loaded) -> CommandMeans | None:
    """Return the means of isolated commands by the settings; None where they depend on more.

    Reads the file of `sandbox.packages`; one that cannot be read counts as empty.
    """
    settings = loaded.settings.sandbox
    if settings.provider not in {"auto", "bubblewrap", "landlock"}:
        return None
    names: Iterable[str] = ()
    if settings.packages:
        with contextlib.suppress(OSError, UnicodeError):
            names = Path(settings.packages).expanduser().read_text(encoding="utf-8").splitlines()
    found = (_REQUIREMENT.match(line.strip()) for line in names)
    return CommandMeans(
        path_of_commands(map(str, settings.read_only)),
        own_path=loaded.environ.get("PATH", ""),
        packages=frozenset(normal_name(each[0]) for each in found if each),
        reaches_hosts=settings.network not in ("off", ()),
    )


def open_mcp_servers(loaded: Loaded) -> McpServers:
    """Return the MCP servers of the settings and the home folder; none is started.

    Raises:
        RuleError: a rule of the settings is invalid.
    """
    entries = {
        name: entry.get_secret_value() for name, entry in loaded.settings.mcp.servers.items()
    }

    def expand(value: Any, where: str) -> Any:
        try:
            return loaded.expand(value, where)
        except ConfigError as error:
            raise LarkspurError(str(error)) from error

    files = DefinitionFiles(loaded.home, entries, expand)
    token_key = loaded.settings.mcp.token_key
    return McpServers(
        files,
        McpPins(loaded.home),
        version=VERSION,
        logins=TokenFile(loaded.home, token_key.get_secret_value() if token_key else ""),
        deny=denied_hosts(loaded),
        environ=loaded.environ,
    )


def denied_hosts(loaded: Loaded) -> list[Rule]:
    """Return the rules about hosts that no command reaches."""
    denied = (text for text in loaded.settings.tools.deny if split_rule(text)[0] == NETWORK)
    return [parse_rule(text, {}) for text in denied]
