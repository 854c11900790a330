"""Location on this machine of the files made by runs."""

from pathlib import Path

import pytest

from internal.channels.cli.artifact_files import find_local_file


@pytest.mark.parametrize(
    "folder", ["session-files/session-1", "workspaces/session-1", "task-folders/session-1.task-2"]
)
def test_a_file_is_found_in_the_folders_of_its_session(
    home: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("LARKSPUR_HOME", str(home))
    output = home / folder / "output"
    output.mkdir(parents=True)
    (output / "a.txt").write_text("four")
    (output / "link").symlink_to("a.txt")
    assert find_local_file("session-1", "a.txt", 4) == str(output / "a.txt")
    assert find_local_file("session-1", "a.txt", 5) is None
    assert find_local_file("session-1", "link", 4) is None
    assert find_local_file("session-*", "a.txt", 4) is None
    assert find_local_file("session-2", "a.txt", 4) is None
