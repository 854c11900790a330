"""Requirements of the scripts of a skill: programs, Python packages, and the network.

Scripts are read, never executed. Names that a script computes are not found.
"""

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from internal.agent.domain.permissions.shell.parser import ParsedCommand, parse_script
from internal.agent.domain.permissions.shell.program_table import split_names

MAX_SCRIPT_BYTES = 200_000
"""Larger scripts are not read: they are mostly data."""
_MAX_NAMES = 12

_SHEBANG = re.compile(r"#!\s*(\S+)(?:\s+(?:-S\s+)?([\w.+-]+))?")
_INTERPRETERS = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node"}
_INTERPRETERS |= {".cjs": "node", ".rb": "ruby", ".pl": "perl", ".php": "php"}
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]*")
_FUNCTION = re.compile(r"^\s*(?:function\s+)?([\w-]+)\s*\(\)|^\s*function\s+([\w-]+)", re.MULTILINE)
_SHELL_WORDS = split_names(
    ". : [ alias bg bind break builtin caller case cd command compgen complete compopt continue",
    "coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc",
    "fg fi for function getopts hash help history if in jobs kill let local logout mapfile popd",
    "printf pushd pwd read readarray readonly return select set shift shopt source suspend test",
    "then time times trap true type typeset ulimit umask unalias unset until wait while",
)
_STARTS = frozenset({"run", "call", "check_call", "check_output", "Popen", "which"})
_OPTIONAL = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NETWORK_MODULES = split_names(
    "aiohttp anthropic boto3 botocore ftplib http.client httpx huggingface_hub imaplib openai"
    " paramiko playwright requests selenium smtplib urllib.request urllib3 websockets"
)
_NETWORK_PROGRAMS = split_names("curl gh npm npx pip pip3 rsync scp ssh uvx wget")
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "markdown": "markdown",
    "mcp": "mcp",
    "pptx": "python-pptx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages of PyPI whose modules have other names."""


class CommandMeans(NamedTuple):
    """Means of isolated commands.

    `path` is the PATH of the commands, `own_path` the PATH of Larkspur. `packages` are the Python
    packages of the settings, by their normal names. `reaches_hosts` is true if some hosts are
    allowed.
    """

    path: str
    own_path: str = ""
    packages: frozenset[str] = frozenset()
    reaches_hosts: bool = False


class ScriptNeeds:
    """Collects the requirements of scripts, file by file."""

    def __init__(self) -> None:
        self._programs: set[str] = set()
        self._modules: set[str] = set()
        self._local: set[str] = set()

    def add(self, path: str, content: bytes) -> None:
        """Read a file of the skill; a file that is not a script is skipped."""
        place = PurePosixPath(path)
        self._local |= {place.stem, *place.parts[:-1]}
        text = content[: MAX_SCRIPT_BYTES + 1].decode("utf-8-sig", "replace")
        interpreter = _INTERPRETERS.get(place.suffix.lower(), "")
        if found := _SHEBANG.match(text):
            name = PurePosixPath(found[1]).name
            interpreter = (found[2] or name) if name == "env" else name
        if not interpreter:
            return
        self._programs.add(interpreter)
        if len(content) > MAX_SCRIPT_BYTES:
            return
        if interpreter.startswith("python"):
            self._add_python(text)
        elif interpreter in {"bash", "sh", "dash", "zsh"}:
            self._add_shell(text)

    def lacks(self, means: CommandMeans) -> list[str]:
        """Return sentences about missing requirements, with the settings that add them. Blocks."""
        programs = {each for each in self._programs if not shutil.which(each, path=means.path)}
        elsewhere = {each for each in programs if shutil.which(each, path=means.own_path)}
        sentences = []
        if missing := programs - elsewhere:
            sentences.append(
                f"Its scripts need {_listed(missing)}, which isolated commands do not find: install"
                " it on this machine, or name the folder that has it in sandbox.read_only."
            )
        for name in sorted(elsewhere):
            found = shutil.which(name, path=means.own_path) or ""
            sentences.append(
                f"Its scripts need {name}, which isolated commands do not see: name the folder of"
                f" {found} in sandbox.read_only."
            )
        if packages := self._packages() - means.packages - _installed(means.path):
            sentences.append(
                f"Its scripts need the Python packages {_listed(packages)}, which isolated commands"
                " do not have: name them in the file of sandbox.packages."
            )
        uses = (self._modules & _NETWORK_MODULES) | (self._programs & _NETWORK_PROGRAMS)
        if uses and not means.reaches_hosts:
            sentences.append(
                f"Its scripts use the network ({_listed(uses)}), which isolated commands do not"
                " reach unasked: sandbox.network allows hosts."
            )
        return sentences

    def _packages(self) -> set[str]:
        modules = {each.partition(".")[0] for each in self._modules}
        foreign = modules - self._local - sys.stdlib_module_names
        return {normal_name(_DISTRIBUTIONS.get(each, each)) for each in foreign}

    def _add_python(self, text: str) -> None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in _required(tree):
            match node:
                case ast.Import():
                    self._modules |= {alias.name for alias in node.names}
                case ast.ImportFrom(module=str() as module, level=0):
                    self._modules.add(module)
                    self._modules |= {f"{module}.{alias.name}" for alias in node.names}
                case ast.Call():
                    self._programs |= set(_started(node))
                case _:
                    pass

    def _add_shell(self, text: str) -> None:
        functions = {found[1] or found[2] for found in _FUNCTION.finditer(text)}
        for part in parse_script(text).parts:
            if isinstance(part, ParsedCommand) and part.words:
                name = part.words[0]
                is_program = name.kind == "plain" and _PROGRAM.fullmatch(name.text)
                if is_program and name.text not in _SHELL_WORDS | functions:
                    self._programs.add(name.text)


def normal_name(name: str) -> str:
    """Return the name of a Python package as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _required(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a program, without imports that it tries and can do without."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Try) and any(map(_is_optional, node.handlers)):
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _is_optional(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(each, ast.Name) and each.id in _OPTIONAL for each in caught)


def _started(call: ast.Call) -> Iterator[str]:
    """Yield the program that a call of `subprocess` starts, if it is written there."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name not in _STARTS or not call.args:
        return
    first = call.args[0]
    if isinstance(first, ast.List) and first.elts:
        first = first.elts[0]
    elif name != "which":
        return
    value = first.value if isinstance(first, ast.Constant) else None
    if isinstance(value, str) and _PROGRAM.fullmatch(value):
        yield value


def _installed(path: str) -> frozenset[str]:
    """Return the packages beside the Python of commands."""
    python = shutil.which("python3", path=path)
    if python is None:
        return frozenset()
    prefix = Path(python).resolve().parent.parent
    folders = (
        *prefix.glob("lib/python3*/dist-packages"),
        *prefix.glob("lib/python3*/site-packages"),
        *prefix.glob("local/lib/python3*/dist-packages"),
    )
    names = (each.name for folder in folders for each in folder.glob("*.*-info"))
    return frozenset(normal_name(name.partition("-")[0]) for name in names)


def _listed(names: set[str]) -> str:
    shown = sorted(names)[:_MAX_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
