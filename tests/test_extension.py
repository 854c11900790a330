"""Openness of the structure: few modules know a feature, and an addition edits no test.

The present exceptions are listed, and may only become fewer.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from internal.agent.domain.events.types import EVENTS
from internal.agent.domain.react.gates import GATES
from internal.channels.chat.command_handlers import CHAT_COMMANDS
from internal.channels.cli.commands.registry import COMMANDS
from internal.channels.cli.repl.slash_commands import SLASH_COMMANDS
from internal.model_providers.registry import PROVIDERS
from internal.search_providers.registry import PROVIDERS as SEARCH_PROVIDERS
from internal.tools.registry import TOOLS
from tests import ROOT
from tests.support.tracked_files import tracked_files

pytestmark = pytest.mark.slow

MAX_KNOWING_MODULES = 2
"""Modules outside of a feature's own that may know the feature."""

# A feature: the identifiers by which code knows it, and the number of modules of `internal/agent`
# that do so today, without its own modules.
FEATURES = {
    "archives": ("archive", 7),
    "artifacts": ("artifact", 14),
    "background commands": ("background_command", 4),
    "hooks": ("hook", 6),
    "hosts": ("host", 20),
    "input files": ("input_file|attachment", 30),
    "instructions": ("instruction_block|instruction_file|found_instructions", 1),
    "mcp": ("mcp", 7),
    "questions": ("question", 34),
    "skills": ("skill", 7),
    "subtasks": ("subtask|delegat", 32),
    "titles": ("title", 21),
    "worktrees": ("worktree", 6),
}

# A registry: its names, and the test modules that list all of them today.
REGISTRIES: dict[str, tuple[set[str], set[str]]] = {
    "tools": ({each.spec.name for each in TOOLS}, set()),
    "model providers": ({each.name for each in PROVIDERS}, set()),
    "search providers": (
        {each.name for each in SEARCH_PROVIDERS},
        {"tests/support/search_services.py"},
    ),
    "events": ({each.__name__ for each in EVENTS}, set()),
    "gates": ({type(each).__name__ for each in GATES["strict"]}, set()),
    "commands": ({each.name for each in COMMANDS}, set()),
    "commands of chats": ({each.name for each in CHAT_COMMANDS}, set()),
    "slash commands of the terminal": ({each.name for each in SLASH_COMMANDS}, set()),
}

MIN_IMPLEMENTATIONS = 2
SINGLE_IMPLEMENTATIONS = {
    "Application",
    "AudioReader",
    "BackgroundCommands",
    "ChatTransport",
    "DatabaseAdmin",
    "DocumentReader",
    "EmptyWorkspaces",
    "HookAdmin",
    "LessonAdmin",
    "McpAdmin",
    "PartialUpload",
    "PartialUploads",
    "ScreenContent",
    "SessionWorkspaces",
    "Setup",
    "SkillAdmin",
    "SkillReviews",
    "StreamTransport",
    "WorkspaceArchives",
    "WorkspaceChanges",
    "WorkspaceFiles",
    "WorkspaceTree",
    "Worktrees",
}
"""The Protocols of today with fewer, test doubles included, as far as names and methods show."""


def _modules(folder: str) -> list[Path]:
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py" and path.is_relative_to(ROOT / folder)
    ]


def _identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.ImportFrom(module=str(module), names=names):
                yield from module.split(".")
                yield from (each.name for each in names)
            case _:
                pass


@cache
def _agent_identifiers() -> dict[str, str]:
    """The identifiers of each module of the agent, in lower case with underscores, joined."""
    return {
        str(path.relative_to(ROOT)): " ".join(
            {
                re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
                for name in _identifiers(ast.parse(path.read_text()))
            }
        )
        for path in _modules("internal/agent")
        if "capabilities" not in path.parts  # features that hang on the run
    }


@pytest.mark.parametrize("feature", FEATURES)
def test_few_modules_of_the_agent_know_a_feature(feature: str) -> None:
    pattern, today = FEATURES[feature]
    knowing = [
        path
        for path, names in _agent_identifiers().items()
        if re.search(pattern, names) and not re.search(pattern, path)
    ]
    assert len(knowing) <= max(today, MAX_KNOWING_MODULES), knowing
    assert len(knowing) >= today, "fewer modules know it: lower its number, or remove it"


def test_an_interface_has_two_implementations() -> None:
    interfaces = [node for node in _classes("internal") if "Protocol" in _bases(node)]
    others = [
        node
        for folder in ("cmd", "internal", "tests")
        for node in _classes(folder)
        if "Protocol" not in _bases(node)
    ]
    members = [(_bases(node), _members(node)) for node in others]
    inherited = dict(zip((node.name for node in others), members, strict=True))
    for bases, own in members:
        own.update(*(inherited[base][1] for base in bases if base in inherited))
    implementations = {
        interface.name: sum(
            interface.name in bases or _required(interface) <= own for bases, own in members
        )
        for interface in interfaces
    }
    single = {name for name, number in implementations.items() if number < MIN_IMPLEMENTATIONS}
    assert single == SINGLE_IMPLEMENTATIONS


def _classes(folder: str) -> list[ast.ClassDef]:
    return [
        node
        for path in _modules(folder)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


def _required(interface: ast.ClassDef) -> set[str]:
    names = {
        each.name
        for each in interface.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return {name for name in names if not name.startswith("__")} or names


def _members(node: ast.ClassDef) -> set[str]:
    """Return the methods and attributes of a class, including attributes set by its methods."""
    found = set()
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
            case _:
                pass
    return found


@pytest.mark.parametrize("registry", REGISTRIES)
def test_no_test_lists_what_a_registry_holds(registry: str) -> None:
    names, today = REGISTRIES[registry]
    assert len(names) > 1
    listing = {
        str(path.relative_to(ROOT))
        for path in _modules("tests")
        if path != Path(__file__) and all(name in (text := path.read_text()) for name in names)
        if any(names <= each for each in _collections(ast.parse(text)))
    }
    assert listing == today


def _collections(tree: ast.Module) -> Iterator[set[str]]:
    """Yield the constants and names in each list, tuple, set and dictionary."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            yield {
                str(each.value) if isinstance(each, ast.Constant) else each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Constant | ast.Name)
            }


def test_the_check_of_listings_finds_examples() -> None:
    tree = ast.parse("ROWS = [('a', 1), ('b', 2)]\nNAMES = {A: 1, B: 2}")
    found = list(_collections(tree))
    assert any({"a", "b"} <= each for each in found)
    assert any({"A", "B"} <= each for each in found)
