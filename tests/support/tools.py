"""The built-in tools and a sandbox, for a folder of the test."""

from pathlib import Path
from typing import Any

from internal.documents.reader import ChildDocumentReader
from internal.observability.clock import SystemClock
from internal.sandbox.environment import CommandEnvironment
from internal.sandbox.native import NativeSandbox
from internal.sandbox.workspaces import SessionFolders
from internal.tools.commands.background import BackgroundCommandPool
from internal.tools.http_client import Fetcher
from internal.tools.instruction_trust import InstructionTrust
from internal.tools.protected_paths import ProtectedPaths
from internal.tools.registry import ToolBox
from internal.tools.tool import WebClients


def native_sandbox(folder: Path, **options: str) -> NativeSandbox:
    """Return a sandbox whose private folders are beside the folder."""
    homes = SessionFolders(_beside(folder, "homes"))
    return NativeSandbox(homes, CommandEnvironment(**options))


def unprotected(folder: Path) -> ProtectedPaths:
    """Return the protection of a home folder that does not exist."""
    return ProtectedPaths(_beside(folder, "no-home"))


def tool_box(folder: Path, **options: Any) -> ToolBox:
    """Return the built-in tools for a workspace, with other options than the usual ones."""
    usual: dict[str, Any] = {
        "sandbox": native_sandbox(folder),
        "background": BackgroundCommandPool(SystemClock(), InstructionTrust(folder.parent)),
        "documents": ChildDocumentReader(native_sandbox(folder)),
        "web": WebClients(Fetcher()),
        "protected": unprotected(folder),
    }
    return ToolBox(**{**usual, **options})


def _beside(folder: Path, name: str) -> Path:
    return folder.with_name(f"{folder.name}-{name}")
