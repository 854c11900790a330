"""Declarations of the clients, read from the head of each program."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

CLIENTS = Path(__file__).parent / "clients"
DOORS = {
    "chat": "`/v1/chat/completions`",
    "responses": "`/v1/responses`",
    "mcp": "`/mcp`",
    "mcp-serve": "`larkspur mcp serve`",
    "stream": "`/api/sse`",
    "webhook": "webhooks",
}
"""By the word in a declaration: a door of Larkspur as the table names it."""
LANGUAGES = {"python": "Python", "node": "Node.js", "go": "Go", "rust": "Rust", "java": "Java"}
_LINE = re.compile(r"(?:#|//) ([a-z]+): (\S.*)")
_KEYS = {"client", "registry", "packages", "door"}
_OPTIONAL = {"remark", "untried"}


class Declaration(NamedTuple):
    """A client of one interface, named by `door`.

    `packages` are requirements in the syntax of the registry, each with its version; the first is
    the client. `untried` is the reason why the client is not run, or empty.
    """

    client: str
    registry: str
    packages: tuple[str, ...]
    door: str
    language: str
    program: Path
    remark: str = ""
    untried: str = ""

    @property
    def name(self) -> str:
        """The name of its row, which `ONLY` selects."""
        return f"{self.client} {self.door}"


def declaration(program: Path) -> list[Declaration]:
    """Read the head of a program, which declares one `door` or several.

    Raises:
        ValueError: The head lacks a key, or has one that is unknown.
    """
    said: dict[str, str] = {}
    for line in program.read_text(encoding="utf-8").splitlines():
        if not (found := _LINE.fullmatch(line)):
            break
        said[found[1]] = found[2]
    if _KEYS - set(said) or set(said) - _KEYS - _OPTIONAL:
        raise ValueError(f"{program.name}: its head needs exactly {', '.join(sorted(_KEYS))}")
    return [
        Declaration(
            client=said["client"],
            registry=said["registry"],
            packages=tuple(said["packages"].split()),
            door=door,
            language=program.parent.name,
            program=program,
            remark=said.get("remark", ""),
            untried=said.get("untried", ""),
        )
        for door in said["door"].split()
    ]


@cache
def declarations() -> tuple[Declaration, ...]:
    """Return all clients, grouped by `door`."""
    programs = [
        path
        for path in sorted(CLIENTS.glob("*/*"))
        if path.is_file() and not path.stem.lower().endswith("scenarios")
    ]
    found = [each for program in programs for each in declaration(program)]
    order = list(DOORS)
    return tuple(sorted(found, key=lambda each: (order.index(each.door), each.client.lower())))
