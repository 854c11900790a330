"""Paths that cannot be granted."""

from pathlib import Path

import pytest

from internal.mcp.definitions import DefinitionError, ServerDefinition
from internal.mcp.launch.granted_paths import check_paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh" / "keys").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".ssh")
    return tmp_path


def test_folders_of_people_can_be_granted(home: Path) -> None:
    check_paths(ServerDefinition("x", command="y", read_only=(str(home / "notes"),)))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "it does not exist"),
        (".ssh", "has secrets"),
        (".ssh/keys", "has secrets"),
        ("link", "has secrets"),
        ("/tmp", "commands have a /tmp of their own"),  # noqa: S108 - of commands
    ],
)
def test_others_are_refused_with_the_reason(home: Path, path: str, reason: str) -> None:
    given = ServerDefinition("x", command="y", read_only=(str(home / path),))
    with pytest.raises(DefinitionError, match=reason):
        check_paths(given)


@pytest.mark.usefixtures("home")
def test_the_system_is_not_written() -> None:
    with pytest.raises(DefinitionError, match=r"--write /usr/lib cannot work: it belongs to"):
        check_paths(ServerDefinition("x", command="y", writable=("/usr/lib",)))
