"""Programs of each language, with the real interpreters."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import (
    Allowed,
    ApprovalNeeded,
    Denied,
    Policy,
    evaluate_call,
)
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.ports.tools import CallContext, ToolOutcome
from internal.tools.commands.run_code import run_code
from internal.tools.registry import ToolBox
from tests.support.tools import native_sandbox, tool_box


@pytest.fixture
def box(tmp_path: Path) -> ToolBox:
    return tool_box(tmp_path)


async def run(box: ToolBox, folder: Path, **arguments: Any) -> ToolOutcome:
    context = CallContext(SessionId("s"), RunId("r"), "c", str(folder), lambda _text: None)
    return await box.run(context, "run_code", arguments)


PROGRAMS = {
    "python": ("import os, sys\nprint('音', os.getcwd())\nsys.exit(3)", 3),
    "node": ("const b = 6n * 7n; console.log(`${b}`, process.cwd()); process.exit(4)", 4),
    "bash": ("read -r x\necho \"$1 $x 'a' $(pwd)\"\nexit 5", 5),
}


LANGUAGES = pytest.mark.parametrize(
    "language", ["python", pytest.param("node", marks=pytest.mark.needs("node")), "bash"]
)


@LANGUAGES
async def test_a_program_runs_in_the_workspace(box: ToolBox, tmp_path: Path, language: str) -> None:
    code, exit_code = PROGRAMS[language]
    outcome = await run(box, tmp_path, language=language, code=code)
    assert str(tmp_path) in outcome.text
    assert outcome.text.endswith(f"[exit code {exit_code}]")
    assert outcome.metadata["exit_code"] == exit_code


async def test_errors_and_time_limits_are_part_of_the_result(box: ToolBox, tmp_path: Path) -> None:
    broken = await run(box, tmp_path, language="python", code="print('before')\n1/0")
    assert "before" in broken.text
    assert "line 2" in broken.text
    assert "ZeroDivisionError" in broken.text
    endless = await run(
        box, tmp_path, language="python", code="while True: pass", timeout_seconds=1
    )
    assert endless.text == "[ended after 1 s with all it had started]"


async def test_nobody_is_asked_about_a_language_that_the_sandbox_lacks(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "python3"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    box = tool_box(tmp_path, sandbox=native_sandbox(tmp_path, path=str(programs)))
    context = CallContext(SessionId("s"), RunId("r"), "c", str(tmp_path), lambda _text: None)
    call = {"language": "node", "code": "1"}
    for handle in (box.preview, box.run):
        with pytest.raises(ToolError, match="no node in the sandbox; run_code has python and bash"):
            await handle(context, "run_code", call)
    assert await box.preview(context, "run_code", {**call, "language": "bash"}) == ""


@LANGUAGES
async def test_a_long_program_runs(box: ToolBox, tmp_path: Path, language: str) -> None:
    comment = "//" if language == "node" else "#"
    end = "console.log('end')" if language == "node" else "echo end"
    end = "print('end')" if language == "python" else end
    code = f"{comment} {'x' * 70}\n" * 15_000 + end
    assert (await run(box, tmp_path, language=language, code=code)).text == "end\n[exit code 0]"


@pytest.mark.parametrize(
    "arguments",
    [
        {"language": "ruby", "code": "puts 1"},
        {"language": "python"},
        {"language": "python", "code": ""},
        {"language": "python", "code": 1},
        {"language": "python", "code": "1", "timeout_seconds": 0},
        {"language": "python", "code": "1", "network": ["a"] * 33},
    ],
)
async def test_wrong_arguments_are_refused(
    box: ToolBox, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match=r"argument|needs"):
        await run(box, tmp_path, **arguments)


def test_code_is_asked_about_unless_it_is_isolated() -> None:
    call = {"language": "python", "code": "import os"}
    needed = evaluate_call(Policy(), run_code.spec, call)
    assert isinstance(needed, ApprovalNeeded)
    assert needed.rules == ()
    sandboxed = Policy(mode=Mode.RUN)
    assert evaluate_call(sandboxed, run_code.spec, call, isolated=True) == Allowed()
    assert isinstance(evaluate_call(sandboxed, run_code.spec, call), ApprovalNeeded)
    with_host = {**call, "network": ["pypi.org"]}
    asked = evaluate_call(sandboxed, run_code.spec, with_host, isolated=True)
    assert isinstance(asked, ApprovalNeeded)
    assert asked.rules == ("network(pypi.org)",)
    assert evaluate_call(Policy(allow=("run_code",)), run_code.spec, call) == Allowed("run_code")
    denied = Policy(mode=Mode.ALL, deny=("run_code",))
    assert isinstance(evaluate_call(denied, run_code.spec, call), Denied)
    with pytest.raises(RuleError, match="takes no pattern"):
        Policy(allow=("run_code(python)",)).check({"run_code": run_code.spec.targets})
