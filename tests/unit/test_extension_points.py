"""A gate, an event and a capability are each one class and one registry entry.

Each test extends a copy of the package as a contributor would and runs it. The other extension
points are proved beside their registries: a provider in `llm/test_registry.py`, a tool with two
paths in `agent/domain/permissions/test_targets.py`, a command in
`channels/cli/commands/test_registry.py`, a slash command of every channel in
`tests/e2e/test_added_command.py`, a chat channel in `tests/support/echo_channel.py`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

GATE = '''
class ReadOnlyGate:
    """Corrects every call that is not a read."""

    name: ClassVar[str] = "read-only"

    def check(self, _context: GateContext, call: ToolCall, /) -> Correction | None:
        """Correct all calls but reads."""
        return None if call.name == "read_file" else Correction(f"Do not call {call.name}.")


'''
USE_GATE = """
import json
from internal.agent.domain.ids import RunId
from internal.agent.domain.messages import ToolCall, user_message
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.react.run_config import RunConfig
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import RunLimits, Usage

tools = tuple(ToolSpec(name, name, {"type": "object"}, "read") for name in ("read_file", "sing"))
config = RunConfig(
    run_id=RunId("run-1"), system="", model="m", tools=tools, policy=Policy(mode=Mode.ALL),
    limits=RunLimits(), gates="advisory", workspace="/w", people=False,
)
turn = Turn(config=config, messages=[user_message("hello")], task_index=0)
turn.next()
turn.add_reply([ToolCall("a", "sing", {}), ToolCall("b", "read_file", {})], "m", Usage(1, 1), 0.0)
step = turn.next()
print(json.dumps([[call.call_id for call in step.calls], turn.results["a"].text]))
"""
EVENT = '''
class LunchServed(Event, frozen=True, kw_only=True):
    """Lunch was served."""

    name: ClassVar[str] = "workflow.lunch.served"
    shown: ClassVar[frozenset[Display]] = EVERYWHERE
    dish: str

    def node(self) -> tuple[str, NodeKind]:
        """The run."""
        return "run", "run"


'''
USE_EVENT = """
import json
from internal.agent.domain.events import schema, types

document = json.dumps(schema.json_schema())
print(json.dumps([
    "workflow.lunch.served" in document,
    "workflow.lunch.served" in schema.markdown(),
    '"workflow.lunch.served": LunchServed' in schema.typescript(),
]))
"""
CAPABILITY = '''
"""Capability of a count of the calls of each run."""

from pathlib import Path
from typing import ClassVar

from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import (
    CallNext,
    CallReport,
    Capability,
    Moment,
    RunCall,
    RunEnded,
)


class CallCountCapability(Capability):
    """Writes how many calls were executed."""

    name: ClassVar[str] = "call_count"

    def __init__(self) -> None:
        self._calls = 0

    async def around_call(self, _call: RunCall, call_next: CallNext, /) -> CallReport:
        self._calls += 1
        return await call_next()

    async def observe(self, _run: RunContext, moment: Moment, /) -> None:
        if isinstance(moment, RunEnded):
            Path("calls.txt").write_text(str(self._calls))
'''
USE_CAPABILITY = "import sys; from larkspur.main import main; sys.exit(main())"


def run_extended(folder: Path, file: str, edits: dict[str, str], program: str) -> object:
    """Run a program with a copy of the package in which each key of `edits` is replaced."""
    shutil.copytree(ROOT / "internal", folder / "internal")
    module = folder / file
    text = module.read_text()
    for anchor, replacement in edits.items():
        assert text.count(anchor) == 1, anchor
        text = text.replace(anchor, replacement)
    module.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_gate_is_one_class_and_one_entry(tmp_path: Path) -> None:
    edits = {
        "GATES: dict[GateMode": f"{GATE.lstrip()}GATES: dict[GateMode",
        '"advisory": (SoloGate(),)': '"advisory": (SoloGate(), ReadOnlyGate())',
    }
    found = run_extended(tmp_path, "internal/agent/domain/react/gates.py", edits, USE_GATE)
    assert found == [["b"], "Do not call sing."]


def test_an_event_is_one_class_and_one_entry(tmp_path: Path) -> None:
    edits = {
        "EVENTS: tuple[type[Event], ...] = (": (
            f"{EVENT.lstrip()}EVENTS: tuple[type[Event], ...] = (\n    LunchServed,"
        ),
    }
    found = run_extended(tmp_path, "internal/agent/domain/events/types.py", edits, USE_EVENT)
    assert found == [True, True, True]


@pytest.mark.slow
def test_a_capability_is_one_module_and_one_entry(
    tmp_path: Path, work: Path, environ: dict[str, str]
) -> None:
    extended = tmp_path / "extended"
    for name in ("cmd", "internal"):
        shutil.copytree(ROOT / name, extended / name)
    module = extended / "internal" / "agent" / "capabilities" / "call_count.py"
    module.write_text(CAPABILITY.lstrip())
    registry = extended / "cmd" / "larkspur" / "capabilities.py"
    text = registry.read_text()
    first = text.index("from internal.agent.capabilities.")
    imported = "from internal.agent.capabilities.call_count import CallCountCapability\n"
    text = f"{text[:first]}{imported}{text[first:]}"
    registry.write_text(
        text.replace("        (\n", "        (\n            CallCountCapability(),\n", 1)
    )
    done = subprocess.run(
        [sys.executable, "-c", USE_CAPABILITY, "-p", "list the files here"],
        cwd=work,
        env={
            **environ,
            "PYTHONPATH": f"{extended}:{extended / 'cmd'}",
            "LARKSPUR_LLM__PROVIDER": "offline",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (work / "calls.txt").read_text() == "1"
