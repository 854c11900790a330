"""One third-party MCP server: added by its first command, then with the options from the hints."""

import asyncio
import json
import re
import shlex
import shutil
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.compatibility.installation import end_group, uv
from tests.compatibility.place import base_environ, place
from tests.compatibility.registry_relay import is_needed, relay
from tests.compatibility.results import Row
from tests.compatibility.server_declarations import ServerDeclaration
from tests.compatibility.verdicts import Verdict, shortened
from tests.support.gateway_process import LARKSPUR

MAX_HINTS = 3
ADD_SECONDS = 420.0
CALL_SECONDS = 150
_HINT = re.compile(r"(larkspur mcp add .+)")
_AFTER_COMMAND = re.compile(r", which installs it.*|\.$")


class Added(NamedTuple):
    """Outcome of adding a server.

    `hints` are the options of the further commands suggested by Larkspur; `problem` is empty if the
    server starts.
    """

    hints: tuple[str, ...]
    problem: str
    seconds: float
    tools: int


async def run_server(declared: ServerDeclaration, folder: Path) -> Row:
    """Add a server, review it, and call a tool in a run; return the fields of its row."""
    home = folder / f"server-{declared.name}" / "home"
    home.mkdir(parents=True)
    _furnish(declared, home)
    with relay() if is_needed() else nullcontext("") as address:
        environ = _person(home, address)
        first = f"{declared.given} -- {declared.command}"
        row = await _tried(declared, home, environ, first)
        if row["verdict"] == "does not work" and declared.documented:
            await _larkspur(environ, "mcp", "remove", declared.name, home=home)
            row = await _tried(declared, home, environ, declared.documented)
            row["hints"] = [declared.documented.replace("{home}", "~"), *row["hints"]]
            if row["verdict"] == "works":
                row["verdict"] = "works with a note"
    return row


async def _tried(
    declared: ServerDeclaration, home: Path, environ: Mapping[str, str], command: str
) -> Row:
    """Add a server by a command and the suggestions of Larkspur, review it, and call its tool."""
    added = await _add(declared, home, environ, command)
    remarks = [declared.remark] if declared.remark else []
    row: Row = {
        "registry": declared.registry,
        "hints": [_without(home, each) for each in added.hints],
        "seconds": round(added.seconds),
        "version": _version(home, declared.name),
        "tools": added.tools,
    }
    if added.problem:
        # Behind the lines that tell of its download.
        reason = "".join(added.problem.rpartition("The MCP server")[1:])
        return {**row, "verdict": "does not work", "notes": [shortened(reason), *remarks]}
    await _larkspur(environ, "mcp", "review", declared.name, "--yes", home=home)
    further = await _call(declared, home, environ)
    notes = [*further.pop("notes"), *remarks]
    verdict: Verdict = "works" if not added.hints else "works with a note"
    if further.pop("failed"):
        verdict = "does not work"
    return {**row, **further, "verdict": verdict, "notes": notes}


def _furnish(declared: ServerDeclaration, home: Path) -> None:
    programs = home / ".local/bin"
    programs.mkdir(parents=True)
    # As its own installer lays it.
    for name in ("uv", "uvx"):
        shutil.copy(Path(uv()).with_name(name), programs / name)
    for name, text in declared.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _person(home: Path, address: str) -> dict[str, str]:
    """Return the variables of a person who has uv from its installer and the machine's Node.js."""
    environ = {
        **base_environ(home),
        "PATH": f"{home}/.local/bin:/usr/local/bin:/usr/bin:/bin",
        "LARKSPUR_HOME": str(home / ".larkspur"),
        "LARKSPUR_MCP__MAX_SCHEMA_SHARE": "1",
    }
    if address:
        (home / ".npmrc").write_text(f"registry={address}/npm/\n")
        environ |= {
            "UV_DEFAULT_INDEX": f"{address}/pypi/simple",
            "LARKSPUR_SANDBOX__ALLOW_PRIVATE_NETWORKS": "true",
        }
    return environ


async def _larkspur(environ: Mapping[str, str], *argv: str, home: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "15", str(LARKSPUR), *argv),
        env={**environ, "LARKSPUR_LLM__PROVIDER": "offline"},
        cwd=home,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(ADD_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return 1, f"no end in {ADD_SECONDS:.0f} seconds"
    finally:
        await end_group(process)
    return process.returncode or 0, output.decode(errors="replace")


async def _add(
    declared: ServerDeclaration, home: Path, environ: Mapping[str, str], command: str
) -> Added:
    words = shlex.split(command.replace("{home}", str(home)))
    argv = ["mcp", "add", declared.name, "--yes", *words]
    hints: list[str] = []
    began = time.monotonic()
    while True:
        code, output = await _larkspur(environ, *argv, home=home)
        problem = output if code else ""
        tools = 0
        if not code:
            code, listed = await _larkspur(environ, "mcp", "test", declared.name, home=home)
            tools = listed.count(f"- mcp__{declared.name}__")
            problem = "" if tools else listed
        if not problem:
            return Added((*hints,), "", time.monotonic() - began, tools)
        hint = _hinted(problem, declared)
        if hint is None or hint == argv or len(hints) == MAX_HINTS:
            return Added((*hints,), problem[-1500:], time.monotonic() - began, 0)
        hints.append(_new_options(argv, hint))
        await _larkspur(environ, "mcp", "remove", declared.name, home=home)
        argv = hint


def _hinted(output: str, declared: ServerDeclaration) -> list[str] | None:
    """Return the arguments of the suggested command in an output, with a person's own values."""
    if not (found := _HINT.search(output)):
        return None
    words = shlex.split(_AFTER_COMMAND.sub("", found[1]))[1:]
    for n, word in enumerate(words):
        name, is_variable, value = word.partition("=")
        if is_variable and value == "VALUE":
            words[n] = f"{name}={declared.variables.get(name, 'none')}"
    return [*words[:3], "--yes", *(word for word in words[3:] if word != "--yes")]


def _new_options(before: list[str], after: list[str]) -> str:
    """Return the options of a command that the one before it did not have."""
    pairs = [" ".join(pair) for pair in pairwise(after)]
    known = " ".join(before)
    return " ".join(pair for pair in pairs if pair.startswith("--") and pair not in known)


def _without(home: Path, text: str) -> str:
    return text.replace(str(home), "~")


def _version(home: Path, name: str) -> str:
    definitions = home / ".larkspur/mcp.json"
    if not definitions.exists():
        return ""
    entry = json.loads(definitions.read_text())["mcpServers"].get(name, {})
    package = str(entry.get("package", ""))
    return package.rpartition("==")[2].rpartition("@")[2]


async def _call(
    declared: ServerDeclaration, home: Path, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Submit a task whose model calls the tool; return its measurements."""
    arguments = json.loads(json.dumps(declared.arguments).replace("{home}", str(home)))
    tool = f"mcp__{declared.name}__{declared.tool}"
    use = json.dumps({"tool": tool, "arguments": arguments})
    async with place(home.parent, environ=environ) as where:
        before = set(_descendants(where.gateway.process.pid))
        # Without a call the task only shows which tools the model gets.
        text = f"case: use [{declared.name}] {use}" if declared.tool else "case: plain [server]"
        task = {"task": text, "options": {"permission_mode": "all"}}
        answer = (await where.gateway.client.post(f"/api/tasks?wait={CALL_SECONDS}", task)).json()
        run = answer.get("run") or {}
        said = str(run.get("answer") or run.get("error") or answer)
        started = set(_descendants(where.gateway.process.pid)) - before
        found: dict[str, Any] = {
            "memory_mb": round(sum(map(_resident, started)) / 1_000_000) or None,
            "tokens": where.tool_tokens.get(declared.name),
            "called": declared.tool,
            "notes": [],
            "failed": False,
        }
    if declared.tool and declared.expected not in said:
        found["failed"] = True
        # Without the frame around the output of a server.
        reason = said.rpartition("is to be followed.]")[2].strip()
        found["notes"] = [f"{declared.tool}: {shortened(reason)}"]
    elif declared.made and not (home / declared.made).exists():
        found["failed"] = True
        found["notes"] = [f"{declared.tool}: succeeds, but ~/{declared.made} is not there"]
    return found


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, open_pids = [], [pid]
    while open_pids:
        children = parents.get(open_pids.pop(), [])
        found += children
        open_pids += children
    return found


def _resident(pid: int) -> int:
    """Return the proportional resident memory of a process in bytes, 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
