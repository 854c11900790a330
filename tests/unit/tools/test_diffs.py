"""Previews of the changes of a call."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.text import escape_invisible
from internal.agent.ports.tools import CallContext, ToolSource
from internal.i18n.language import Language
from internal.tools.diffs import MAX_PREVIEW_BYTES, unified_diff
from internal.tools.registry import TOOLS
from internal.tools.tool import Tool, ToolContext, tool
from internal.tools.workspace import WorkspacePath
from tests.support.tools import tool_box

TITLE: dict[Language, str] = {"en": "Sample", "zh": "示例"}
Preview = Callable[..., Any]


def box(*tools: Tool) -> ToolSource:
    return tool_box(Path("/files"), tools=tools or TOOLS)


def context(root: Path) -> CallContext:
    return CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None)


@pytest.fixture
def preview(tmp_path: Path) -> Preview:
    async def of(name: str, **arguments: object) -> str:
        before = state(tmp_path)
        text = await box().preview(context(tmp_path), name, arguments)
        assert state(tmp_path) == before
        return text

    return of


def state(root: Path) -> list[tuple[str, bytes, int]]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return [(str(path), path.read_bytes(), path.stat().st_mtime_ns) for path in files]


async def test_a_new_file_is_all_additions(preview: Preview) -> None:
    shown = await preview("write_file", path="notes/a.md", content="one\n\ntwo\n")
    assert shown == "--- /dev/null\n+++ b/notes/a.md\n@@ -0,0 +1,3 @@\n+one\n+\n+two"


async def test_overwriting_a_file_shows_the_removed_lines(preview: Preview, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n\nthree\n")
    shown = await preview("write_file", path="a", content="one\n2\n\nthree\n")
    assert shown == "--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n\n three"
    with pytest.raises(ToolError, match="a has exactly this content already: nothing to write"):
        await preview("write_file", path="a", content="one\ntwo\n\nthree\n")
    assert await preview("write_file", path="new", content="") == "[a new empty file]"


async def test_the_preview_of_an_edit_equals_its_diff(preview: Preview, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {n}\n" for n in range(40)))
    edit = {"path": "a", "old_string": "line 3", "new_string": "LINE 3", "replace_all": True}
    shown = await preview("edit_file", **edit)
    outcome = await box().run(context(tmp_path), "edit_file", edit)
    assert shown == outcome.metadata["diff"]
    assert "-line 3\n+LINE 3\n" in shown
    assert "-line 30\n" in shown


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\r\nb\r\n", "a\r\nc\r\n", [" a", "-b", "+c"]),
        ("a\nb\n", "a\r\nb\r\n", ["-a", "-b", "+a\r", "+b\r"]),
        ("a\n", "a\nb", [" a", "+b", "\\ No newline at end of file"]),
        ("a", "a\n", ["-a", "\\ No newline at end of file", "+a"]),
        ("a\nb\n", "a\u2028b\n", ["-a", "-b", "+a\u2028b"]),
        ("a\nb\n", "a\x0cb\n", ["-a", "-b", "+a\x0cb"]),
        ("a\rb\n", "a\nb\n", ["-a\rb", "+a", "+b"]),
    ],
)
def test_only_line_feeds_end_a_line(before: str, after: str, lines: list[str]) -> None:
    assert unified_diff("x", before, after).split("\n")[3:] == lines


async def test_line_breaks_in_a_file_name_are_escaped(preview: Preview) -> None:
    shown = await preview("write_file", path="a\n+++ b/safe.txt", content="x\n")
    assert shown.split("\n")[1] == "+++ b/a\\n+++ b/safe.txt"


@pytest.mark.parametrize(
    ("content", "counted"),
    [
        ("line\n" * 50_000, 50_000),
        ("\u202e\n" * 50_000, 50_000),
        (" \n" * 50_000, 50_000),
        ("x" * 900_000 + "\n" + "\x00\u200b\ud7ff" * 300_000, 2),
    ],
)
async def test_a_long_preview_is_truncated_with_a_count(
    preview: Preview, content: str, counted: int
) -> None:
    shown = await preview("write_file", path="a", content=content)
    assert len(msgspec.json.encode(escape_invisible(shown))) <= MAX_PREVIEW_BYTES
    if shown.endswith(" more lines"):
        *kept, note = shown.split("\n")
        more = int(note.removeprefix("… ").removesuffix(" more lines").replace(",", ""))
        assert sum(line[:1] == "+" for line in kept[2:]) + more >= counted
        assert len(kept) > 20
    else:
        assert "… 899,001 more characters" in shown


async def test_a_very_large_change_is_counted_instead_of_diffed(
    preview: Preview, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x\n" * 30_000)
    shown = await preview("write_file", path="a", content="y\n" * 20_000)
    assert shown == "[30,000 lines became 20,000 lines]"


async def test_a_call_that_would_fail_says_so(preview: Preview, tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    says = {
        "bin": "this is a binary file of 6 bytes",
        "folder": "folder is a folder",
        "out": "out leads outside the workspace",
        "pipe": "pipe is not a regular file",
        "/etc/passwd": "/etc/passwd is outside the workspace",
        "../x": "contains '..'",
        "": "the path is empty",
    }

    async def fails(reason: str, tool: str, **arguments: object) -> None:
        with pytest.raises(ToolError, match=re.escape(reason)):
            await preview(tool, **arguments)

    for path, reason in says.items():
        await fails(reason, "edit_file", path=path, old_string="a", new_string="b")
        if path in {"/etc/passwd", "../x", ""}:
            await fails(reason, "write_file", path=path, content="x")
        else:  # what cannot be read may still be replaced
            shown = await preview("write_file", path=path, content="x")
            assert shown.startswith("[no preview: "), path
            assert reason in shown
    await fails("half a character", "write_file", path="a", content="\ud800")
    await fails("needs the argument 'content'", "write_file", path="a")
    await fails("has no argument 'mode'", "write_file", path="a", content="", mode=1)
    await fails("needs the argument 'command'", "shell")
    (tmp_path / "a").write_text("x x\n")
    await fails("old_string is not in a", "edit_file", path="a", old_string="zz", new_string="y")
    await fails("occurs 2 times", "edit_file", path="a", old_string="x", new_string="y")


async def test_a_missing_workspace_fails_the_call(tmp_path: Path) -> None:
    gone = context(tmp_path / "gone")
    shown = await box().preview(gone, "write_file", {"path": "a", "content": "x"})
    assert shown.startswith("[no preview: the workspace ")


async def test_other_tools_have_no_preview(preview: Preview) -> None:
    assert await preview("shell", command="rm x") == ""
    assert await preview("read_file", path="a") == ""
    assert await preview("no such tool") == ""


async def test_a_failing_or_hanging_preview_does_not_fail_the_run(tmp_path: Path) -> None:
    async def breaks(context: ToolContext, path: WorkspacePath) -> str:
        raise RuntimeError(f"{path} and {context}")

    async def hangs(context: ToolContext, path: WorkspacePath) -> str:
        await asyncio.Event().wait()
        return f"{path} and {context}"

    async def kept(context: ToolContext, path: Annotated[WorkspacePath, "A path."]) -> str:
        """Keep a file as it is."""
        return f"{path} and {context}"

    arguments = {"path": "a"}
    targets = (PathTarget("path"),)
    broken = box(tool(risk="write", targets=targets, title=TITLE, preview=breaks)(kept))
    assert await broken.preview(context(tmp_path), "kept", arguments) == "[no preview]"
    slow = tool_box(
        tmp_path,
        tools=(tool(risk="write", targets=targets, title=TITLE, preview=hangs)(kept),),
    )
    slow.preview_timeout_seconds = 0.01
    shown = await slow.preview(context(tmp_path), "kept", arguments)
    assert shown == "[no preview: it takes too long]"


def test_every_tool_that_writes_files_has_a_preview() -> None:
    assert all(each.preview_body is not None for each in TOOLS if each.spec.risk == "write")
