"""A workspace and the records of changes made by runs in it."""

from pathlib import Path

import pytest

from internal.tools.protected_paths import ProtectedPaths
from internal.workspace_changes.change_log import WorkspaceChangeLog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "work"
    made.mkdir()
    return made


@pytest.fixture
def protected(tmp_path: Path) -> ProtectedPaths:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return ProtectedPaths(home)


@pytest.fixture
def log(tmp_path: Path, protected: ProtectedPaths) -> WorkspaceChangeLog:
    return WorkspaceChangeLog(tmp_path.resolve() / "home" / "workspace-changes", protected)
