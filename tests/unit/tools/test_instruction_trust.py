"""The texts of instruction files that agents may follow."""

import stat
import threading
from pathlib import Path

import pytest

from internal.tools.instruction_trust import MAX_FILES, InstructionTrust


@pytest.fixture
def trust(tmp_path: Path) -> InstructionTrust:
    return InstructionTrust(tmp_path)


def follows(trust: InstructionTrust, path: str, text: bytes, *, is_own: bool = False) -> bool:
    return trust.follows(path, text, is_own=is_own)


def test_a_text_from_before_the_first_command_is_followed_and_no_other(
    tmp_path: Path, trust: InstructionTrust
) -> None:
    texts = {"/ws/AGENTS.md": b"old", "/ws/sub/AGENTS.md": b"sub"}
    assert follows(trust, "/ws/AGENTS.md", b"older")  # no command has run
    trust.begin_commands("/ws", lambda: texts)
    trust.begin_commands("/ws", lambda: {"/ws/AGENTS.md": b"new"})
    trust.begin_commands("/ws/sub", lambda: {"/ws/sub/AGENTS.md": b"new"})
    again = InstructionTrust(tmp_path)
    assert all(follows(again, path, text) for path, text in texts.items())
    for path in (*texts, "/ws/moved/AGENTS.md"):
        assert not follows(again, path, b"new")
    assert follows(again, "/wsx/AGENTS.md", b"new")
    assert again.trust("/ws/AGENTS.md", b"new")
    assert follows(trust, "/ws/AGENTS.md", b"new")
    assert not follows(trust, "/ws/sub/AGENTS.md", b"new")
    assert stat.S_IMODE((tmp_path / "instructions.json").stat().st_mode) == 0o600


def test_a_folder_above_begins_with_what_no_command_could_write(trust: InstructionTrust) -> None:
    trust.begin_commands("/ws/sub", dict)
    trust.begin_commands("/ws", lambda: {"/ws/AGENTS.md": b"a", "/ws/sub/AGENTS.md": b"b"})
    assert follows(trust, "/ws/AGENTS.md", b"a")
    assert not follows(trust, "/ws/sub/AGENTS.md", b"b")


def test_in_a_folder_of_larkspur_a_text_is_followed_that_was_followed_elsewhere(
    trust: InstructionTrust,
) -> None:
    copy = "/home/worktrees/s.task/AGENTS.md"
    assert not follows(trust, copy, b"text", is_own=True)
    assert follows(trust, "/repository/AGENTS.md", b"text")
    assert follows(trust, copy, b"text", is_own=True)
    assert not follows(trust, copy, b"changed and committed", is_own=True)


def test_only_so_many_are_remembered_and_a_damaged_file_trusts_nothing(
    tmp_path: Path, trust: InstructionTrust
) -> None:
    trust.begin_commands("/ws", lambda: {f"/ws/{n}/AGENTS.md": b"x" for n in range(MAX_FILES)})
    trust.trust("/ws/AGENTS.md", b"x")
    assert not follows(trust, "/ws/0/AGENTS.md", b"x")
    assert follows(trust, "/ws/1/AGENTS.md", b"x")
    (tmp_path / "instructions.json").write_text("{")
    assert not follows(trust, "/elsewhere/AGENTS.md", b"x")
    trust.trust("/ws/AGENTS.md", b"x")
    assert follows(trust, "/ws/AGENTS.md", b"x")
    assert not follows(trust, "/elsewhere/AGENTS.md", b"x")


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=InstructionTrust(tmp_path).trust, args=(f"/{number}", b"x"))
        for number in range(20)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    trust = InstructionTrust(tmp_path)
    trust.begin_commands("/", dict)
    assert all(follows(trust, f"/{number}", b"x") for number in range(20))


def test_without_the_home_folder_nothing_breaks(tmp_path: Path) -> None:
    trust = InstructionTrust(tmp_path / "missing")
    trust.begin_commands("/ws", dict)
    assert not trust.trust("/ws/AGENTS.md", b"x")
