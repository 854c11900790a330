"""The sketch of docs/adr/0019 type-checks, and runs in a copy of Larkspur."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.support.anthropic_server import Call, Reply, ScriptedAnthropic

pytestmark = pytest.mark.slow

DECISION = ROOT / "docs" / "adr" / "0019-memory-on-capabilities.md"

# The notes of the sketch in a file, found by a common word.
NOTES_IN_FILE = '''

class NotesInFile:
    """The notes of all owners, one in a line."""

    def __init__(self) -> None:
        self._file = Path("notes.txt")
        self._file.touch()

    def _notes(self, owner: str) -> list[Note]:
        rows = (line.split("\\t") for line in self._file.read_text().splitlines())
        return [Note(note_id, text) for note_id, of, text in rows if of == owner]

    async def find(self, owner: str, query: str, limit: int, /) -> Sequence[Note]:
        words = set(query.split())
        return [each for each in self._notes(owner) if words & set(each.text.split())][:limit]

    async def read(self, owner: str, note_ids: Sequence[str], /) -> Sequence[Note]:
        return [each for each in self._notes(owner) if each.note_id in note_ids]

    async def add(self, owner: str, key: str, text: str, /) -> Note:
        number = len(self._file.read_text().splitlines()) + 1
        with self._file.open("a") as file:
            file.write(f"n{number}\\t{owner}\\t{text}\\n")
        return Note(f"n{number}", text)

    async def remove(self, owner: str, note_id: str, /) -> None:
        lines = self._file.read_text().splitlines(keepends=True)
        kept = (line for line in lines if not line.startswith(f"{note_id}\\t{owner}\\t"))
        self._file.write_text("".join(kept))

    def mark_used(self, note_ids: Sequence[str], /) -> ExtraWork:
        def work() -> Write[list[EventRecord]]:
            yield from ()
            with Path("used.txt").open("a") as file:
                file.write(f"{' '.join(note_ids)}\\n")
            return []

        return work


def memory() -> MemoryCapability:
    return MemoryCapability(NotesInFile())
'''
IMPORTS = """\
from pathlib import Path
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.store.database import Write
"""


@pytest.fixture
def sketch(tmp_path: Path) -> Path:
    """A module with the sketch, and with notes in a file."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", DECISION.read_text(), re.MULTILINE | re.DOTALL)
    first = "from collections.abc"
    assert block.count(first) == 1
    module = tmp_path / "memory.py"
    module.write_text(block.replace(first, f"{IMPORTS}{first}") + NOTES_IN_FILE)
    return module


def test_the_sketch_type_checks(sketch: Path, tmp_path: Path) -> None:
    def check(module: Path) -> subprocess.CompletedProcess[str]:
        cache = ("--cache-dir", tmp_path / "types")
        command = (sys.executable, "-m", "mypy", "--strict", *cache, module)
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    done = check(sketch)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text(sketch.read_text().replace("MemoryState.of(turn.states)", "turn.memory"))
    assert '"Turn" has no attribute "memory"' in check(wrong).stdout


def extended_copy(folder: Path, sketch: Path) -> Path:
    """Return a copy of Larkspur in which the sketch is registered, with its tools."""
    for name in ("cmd", "internal"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(sketch, folder / "internal" / "agent" / "capabilities" / "memory.py")
    imported = "from internal.agent.capabilities.memory import memory\n"
    for name, place, line in (
        ("capabilities.py", "        (\n", "            memory(),\n"),
        ("services.py", "CombinedTools((", "memory(), "),
    ):
        module = folder / "cmd" / "larkspur" / name
        text = module.read_text()
        first = text.index("from internal.agent.capabilities.")
        assert place in text
        text = text.replace(place, f"{place}{line}", 1)
        module.write_text(f"{text[:first]}{imported}{text[first:]}")
    return folder


def task_of(request: dict[str, Any]) -> str:
    """Return the texts of the first message of a request to the model."""
    return "\n".join(block["text"] for block in request["messages"][0]["content"])


async def test_a_recalled_note_is_in_every_request_until_it_is_forgotten(
    sketch: Path, tmp_path: Path, work: Path, environ: dict[str, str]
) -> None:
    copy = extended_copy(tmp_path / "extended", sketch)
    script = [
        Reply(calls=[Call("remember", {"text": "our week ends on Thursday"})]),
        Reply("Noted."),
        Reply(calls=[Call("list_dir", {})]),
        Reply("On Thursday."),
        Reply(calls=[Call("forget", {"note_id": "n1"})]),
        Reply("Forgotten."),
    ]
    async with ScriptedAnthropic(script) as model:
        settings = {
            "PYTHONPATH": f"{copy}:{copy / 'cmd'}",
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "LARKSPUR_LLM__PROVIDER": "anthropic",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_AGENT__GATES": "off",
        }
        program = "import sys; from larkspur.main import main; sys.exit(main())"
        for task in ("remember our week", "when does our week end?", "forget our week"):
            started = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", program, "-p", task, "--permission-mode", "all"),
                cwd=work,
                env={**environ, **settings},
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            _, errors = await started.communicate()
            assert started.returncode == 0, errors.decode()
        tasks = [task_of(each) for each in model.requests]
    note = "<notes>\nn1: our week ends on Thursday\n</notes>"
    assert [note in each for each in tasks] == [False, False, True, True, True, False]
    assert tasks[2] == tasks[3]
    assert all(note not in str(each.get("system")) for each in model.requests)
    assert (work / "notes.txt").read_text() == ""
    assert (work / "used.txt").read_text() == "\nn1\nn1\n"
