"""Structural rules that no linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from internal.agent.domain.events.control import CONTROLS, ControlFrame
from internal.agent.domain.events.types import EVENTS, Event
from internal.agent.domain.react.gates import CONTROL_CALLS, CONTROL_SPECS, GATES
from internal.tools.registry import TOOLS
from tests import ROOT
from tests.support.tracked_files import tracked_files

TOP = {
    *(".ci", "cmd", "configs", "docs", "internal", "tests", "web"),
    *(
        ".dockerignore",
        ".gitignore",
        ".pre-commit-config.yaml",
        "Dockerfile",
        "Makefile",
        "mkdocs.yml",
        "pyproject.toml",
    ),
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "README.zh.md", "SECURITY.md"),
    *("compose.yaml", "uv.lock"),
}
VAGUE_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
ING_NAMES = {"encoding", "logging", "polling", "routing", "streaming", "testing", "typing"}
MAX_MODULE_LINES = 800


def defined(path: str, *, ends: str = "", decorator: str = "") -> set[str]:
    """Return the classes of a module or folder with this suffix, or the functions so decorated."""
    where = ROOT / path
    found = set()
    for file in sorted(where.glob("*.py")) if where.is_dir() else [where]:
        for node in ast.parse(file.read_text()).body:
            match node:
                case ast.ClassDef(name=name, bases=bases) if ends:
                    if name.endswith(ends) and "Protocol" not in {ast.unparse(b) for b in bases}:
                        found.add(name)
                case ast.AsyncFunctionDef(name=name, decorator_list=[ast.Call(func=func)]):
                    if decorator and ast.unparse(func) == decorator:
                        found.add(name)
                case _:
                    pass
    return found


def subclasses(parent: type[Event] | type[ControlFrame]) -> set[str]:
    return {each.__name__ for each in parent.__subclasses__()}


# The only modules that start processes, and why. What an agent asks for is started by the sandbox.
PROCESS_STARTS = {
    "internal/sandbox/child_process.py": "every isolated process for an agent, and for its sockets",
    "internal/sandbox/container.py": "the engine of containers, for every isolated process",
    "internal/sandbox/launcher/process.py": "Larkspur's own program, which starts such processes",
    "internal/sandbox/launcher/program.py": "every process for an agent without namespaces",
    "internal/channels/cli/repl/commands/shell.py": "!command of the person at the keyboard",
    "internal/channels/cli/repl/keybindings.py": "$EDITOR of the person at the keyboard",
    "internal/channels/cli/clipboard.py": "the clipboard program, on a paste or a copy",
    "internal/channels/cli/commands/browser.py": "the browser of the person who opens the page",
    "internal/git/process.py": "git, which runs nothing that a repository configures",
    "internal/hooks/command.py": "the operator's own programs, from the settings",
    "internal/config/process_start.py": "ps, with a process id, where there is no /proc",
}
_STARTING_MODULES = (
    *("_posixsubprocess", "concurrent.futures.process", "multiprocessing", "pty", "subprocess"),
    "webbrowser",
)
_STARTING_NAMES = re.compile(
    r"os\.(fork|forkpty|system|popen|startfile|exec[lv]\w*|spawn\w+|posix_spawn\w*|\*)"
    r"|(asyncio|anyio)\.(subprocess\.)?(create_subprocess_\w+|open_process|run_process|\*)"
    r"|concurrent\.futures\.ProcessPoolExecutor"
    r"|.*\.(subprocess_exec|subprocess_shell|open_in_editor|run_system_command)"
)

# A roster is a plain tuple beside what it lists. A row each: its name, what it lists, what there is
ROSTERS: tuple[tuple[str, set[str], set[str]], ...] = (
    ("events", {each.__name__ for each in EVENTS}, subclasses(Event)),
    ("controls", {each.__name__ for each in CONTROLS}, subclasses(ControlFrame)),
    (
        "gates",
        {type(each).__name__ for each in GATES["strict"]},
        defined("internal/agent/domain/react/gates.py", ends="Gate"),
    ),
    (
        "tools of the Turn",
        {each.tool for each in CONTROL_CALLS},
        {each.name for each in CONTROL_SPECS},
    ),
)


def modules(*folders: str) -> list[Path]:
    found = [path for path in tracked_files() if path.suffix == ".py"]
    return [path for path in found if path.relative_to(ROOT).parts[0] in folders]


def matching(paths: list[Path], pattern: str) -> list[str]:
    """The lines of text files that match, as `path:number: line`."""
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if wanted.search(line)
    ]


def test_cmd_is_not_a_package() -> None:
    assert not (ROOT / "cmd" / "__init__.py").exists()


def test_the_top_level_is_fixed() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files()} - TOP == set()


def test_no_module_is_longer_than_the_limit() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in modules("cmd", "internal")}
    assert {path: n for path, n in lengths.items() if n > MAX_MODULE_LINES} == {}


def test_modules_and_packages_have_specific_nouns_for_names() -> None:
    paths = [path.relative_to(ROOT) for path in modules("cmd", "internal")]
    assert [path for path in paths if VAGUE_NAMES & {*path.with_suffix("").parts}] == []
    assert [
        path for path in paths if path.stem.endswith("ing") and path.stem not in ING_NAMES
    ] == []


def test_no_public_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in modules("internal"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_limits_have_standard_names() -> None:
    unusual = r"\b_?(MOST|LONGEST|SHORTEST|LARGEST|DEEPEST|PATIENCE)(_[A-Z_]+)?\b"
    assert matching(modules("cmd", "internal"), unusual) == []


def test_documents_name_files_that_exist() -> None:
    texts = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = re.compile(r"`((?:cmd|internal|tests|web/src|configs)/[\w./-]+)`")
    missing = [
        f"{text.relative_to(ROOT)}: {name}"
        for text in texts
        for name in named.findall(text.read_text())
        if "dist" not in name and not (ROOT / name).exists()
    ]
    assert missing == []


def test_documents_name_tests_that_exist() -> None:
    code = "".join(path.read_text() for path in modules("tests"))
    files = {path.name for path in modules("tests")}
    missing = [
        f"{text.name}: {name}"
        for text in sorted((ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"`(test_\w+(?:\.py)?)`", text.read_text())
        if name not in files and f"def {name}(" not in code
    ]
    assert missing == []


def test_terms_of_the_glossary_exist_in_the_code() -> None:
    rows = (ROOT / "docs" / "glossary.md").read_text()
    terms = set(re.findall(r"`([A-Z]\w+)`", rows))
    code = "".join(path.read_text() for path in modules("internal"))
    assert {
        term for term in terms if not re.search(rf"^class {term}\b", code, re.MULTILINE)
    } == set()


def test_nothing_is_left_for_later() -> None:
    leftover = r"\b(TODO|FIXME|XXX)\b|pragma: no cover|raise NotImplementedError"
    assert matching(modules("cmd", "internal"), leftover) == []


def test_every_suppressed_check_has_a_reason() -> None:
    silenced = r"# (noqa|type: ignore)(?!(: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)*|\[[\w, -]+\])\W+\w)"
    here = Path(__file__)
    assert matching([p for p in modules("cmd", "internal", "tests") if p != here], silenced) == []


def test_no_file_contains_a_development_path() -> None:
    assert matching(tracked_files(), r"(?<![\w.}])/(wor" + r"k|roo" + r"t)/") == []


def test_only_the_sandbox_starts_processes_for_an_agent() -> None:
    found = {
        str(path.relative_to(ROOT)): starts
        for path in modules("cmd", "internal")
        if (starts := process_starts(ast.parse(path.read_text())))
    }
    assert {path: found[path] for path in found if path not in PROCESS_STARTS} == {}
    assert set(PROCESS_STARTS) - set(found) == set()  # none is listed that starts nothing


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "import subprocess as s; s.run([])",
        "def f():\n    from subprocess import Popen",
        "import asyncio as a; a.create_subprocess_exec('x')",
        "from asyncio import create_subprocess_shell as run",
        "from asyncio.subprocess import create_subprocess_exec",
        "from asyncio import subprocess; subprocess.create_subprocess_exec('x')",
        "async def f(loop): await loop.subprocess_exec(None)",
        "import asyncio; asyncio.get_running_loop().subprocess_shell(None, 'x')",
        "import os; os.execv('/bin/true', [])",
        "import os; start = os.posix_spawn",
        "from os import fork",
        "from os import *",
        "import os; getattr(os, 'system')('true')",
        "import os.path; os.popen('true')",
        "import pty",
        "from multiprocessing.pool import Pool",
        "from concurrent.futures import ProcessPoolExecutor",
        "import concurrent.futures as c; c.ProcessPoolExecutor()",
        "__import__('subprocess')",
        "from importlib import import_module; import_module('pty')",
        "import webbrowser",
    ],
)
def test_the_check_of_process_starts_finds_examples(source: str) -> None:
    assert process_starts(ast.parse(source))


def test_the_check_of_process_starts_accepts_what_starts_nothing() -> None:
    source = """\
import asyncio, os
from importlib import import_module
def f(process: asyncio.subprocess.Process, system: str) -> None:
    os.path.join(system, str(asyncio.subprocess.PIPE))
    os.execution, process.system("x"), import_module("json"), getattr(os, "getpid")
"""
    assert process_starts(ast.parse(source)) == []


def process_starts(tree: ast.Module) -> list[str]:
    """Return the full names of expressions and imports that start a process in a module."""
    names: dict[str, str] = {}  # bound by imports
    used = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                used += [alias.name for alias in aliases]
                bound = {alias.asname: alias.name for alias in aliases if alias.asname}
                names |= {alias.name.split(".")[0]: alias.name.split(".")[0] for alias in aliases}
                names |= bound
            case ast.ImportFrom(module=module, names=aliases):
                imported = {alias: f"{module}.{alias.name}" for alias in aliases}
                used += imported.values()
                names |= {alias.asname or alias.name: name for alias, name in imported.items()}
            case _:
                pass
    used += [_full_name(node, names) for node in ast.walk(tree)]
    return sorted({name for name in used if _starts_process(name)})


def _full_name(node: ast.AST, names: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=value, attr=attribute):
            return f"{_full_name(value, names)}.{attribute}"
        case ast.Call(
            func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attribute)), *_]
        ):
            return f"{_full_name(value, names)}.{attribute}"
        case ast.Call(func=function, args=[ast.Constant(value=str(module)), *_]):
            imports = {"__import__", "importlib.import_module"}
            return module if _full_name(function, names) in imports else ""
        case _:
            return ""


def _starts_process(name: str) -> bool:
    is_module = any(name == each or name.startswith(f"{each}.") for each in _STARTING_MODULES)
    return is_module or _STARTING_NAMES.fullmatch(name) is not None


def test_permission_rules_know_no_tool_by_name() -> None:
    source = [path for path in modules("internal") if "permissions" in path.parent.parts]
    constants = [
        (path.name, node.value)
        for path in source
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(constants) > 100
    for name in (each.spec.name for each in TOOLS):
        # `shell` is also a word of English; as a name it stands alone or before a parenthesis
        named = re.compile(rf"\b{name}\b" if "_" in name else rf"^{name}$|\b{name}\(")
        assert [where for where, text in constants if named.search(text)] == [], name


def test_rosters_are_complete() -> None:
    for name, listed, there in ROSTERS:
        assert (name, listed) == (name, there)


def test_every_decision_is_in_the_documentation() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    linked = set(re.findall(r"adr/[\w-]+\.md", str(nav)))
    assert linked == {f"adr/{path.name}" for path in (ROOT / "docs" / "adr").glob("*.md")}


def test_code_that_several_test_modules_use_is_in_the_support_package() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {found}"
        for path in modules("tests")
        if re.search(
            pattern := r"from (tests\.\S*\b(?:conftest|test_\w+)) import", path.read_text()
        )
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for found in re.findall(pattern, ast.unparse(node))
    ] == []


def test_the_first_test_of_the_contribution_guide_is_a_test() -> None:
    first = (ROOT / "tests/integration/agent/test_first_run.py").read_text()
    assert f"```python\n{first}```" in (ROOT / "CONTRIBUTING.md").read_text()


def test_tests_wait_for_states_and_use_real_things() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in modules("tests")
        if path.parent.name != "bench"  # a bench polls: notifications would cost time
        if _MAY_DOUBT.search(source := path.read_text())
        for line, what in doubtful(ast.parse(source))
    ] == []


_MAY_DOUBT = re.compile(r"unittest|sleep\((?!0\))|monkeypatch\.(?!setenv|delenv)|skip|xfail")
"""Matches every module with doubtful code, and few others: it takes longest to parse them."""


def test_the_check_of_doubtful_test_code_finds_examples() -> None:
    source = """\
import unittest.mock
from unittest import mock
async def test(monkeypatch):
    await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    time.sleep(delay=1)
    monkeypatch.setattr(thing, "name", 1)
    monkeypatch.setenv("NAME", "value")
    pytest.skip()
@pytest.mark.xfail
def other(): ...
"""
    assert [line for line, _ in doubtful(ast.parse(source))] == [1, 2, 5, 6, 7, 9, 10]


def doubtful(tree: ast.Module) -> list[tuple[int, str]]:
    """The lines of a test module that mock, skip, or let time pass instead of waiting."""
    return sorted(
        (node.lineno, ast.unparse(node).splitlines()[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call | ast.Attribute)
        and any(_doubts(node))
    )


def _doubts(node: ast.Import | ast.ImportFrom | ast.Call | ast.Attribute) -> Iterator[bool]:
    match node:
        case ast.Import(names=names):
            yield any(name.name.startswith("unittest") for name in names)
        case ast.ImportFrom(module=module):
            yield (module or "").startswith("unittest")
        case ast.Call(func=ast.Attribute(attr="sleep"), args=args, keywords=keywords):
            given = [*args, *(one.value for one in keywords)]
            yield any(isinstance(one, ast.Constant) and bool(one.value) for one in given)
        case ast.Attribute(value=ast.Name(id="monkeypatch"), attr=name):
            yield name in {"setattr", "setitem", "delattr"}
        case ast.Attribute(value=ast.Name(id="pytest"), attr=name):
            yield name in {"skip", "xfail", "importorskip"}
        case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
            yield name in {"skip", "skipif", "xfail"}
        case _:
            yield False
