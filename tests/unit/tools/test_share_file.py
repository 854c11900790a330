"""share_file, called as a model calls it."""

import os
from pathlib import Path

import pytest

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.tools import CallContext, SharedFiles, ToolOutcome
from tests.support.tools import tool_box


async def call(root: Path, *paths: str, caption: str = "") -> tuple[ToolOutcome, list[bytes]]:
    """Return the outcome of a call and the stored files."""
    stored: list[bytes] = []

    async def store(name: str, descriptor: int) -> Attachment:
        with os.fdopen(os.dup(descriptor), "rb") as file:
            stored.append(file.read())
        return Attachment(name, "text/plain", "attachment:abc", "abc", len(stored[-1]))

    context = CallContext(SessionId("s"), RunId("r"), "c", str(root), lambda _: None, store)
    arguments = {"paths": list(paths), "caption": caption}
    return await tool_box(root).run(context, "share_file", arguments), stored


async def test_files_are_stored_once_under_their_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("two")
    (tmp_path / "a.txt").write_text("one")
    outcome, stored = await call(tmp_path, "a.txt", "sub/b.txt", "./a.txt", caption="Both")
    assert stored == [b"one", b"two"]
    assert outcome.text == ""
    assert isinstance(outcome.shared, SharedFiles)
    assert [file.name for file in outcome.shared.files] == ["a.txt", "sub/b.txt"]
    assert outcome.shared.caption == "Both"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("sub", "is a folder"), ("fifo", "is not a regular file"), ("gone", "does not exist")],
)
async def test_what_is_no_file_is_refused_with_a_sentence(
    tmp_path: Path, path: str, sentence: str
) -> None:
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ToolError, match=sentence):
        await call(tmp_path, path)


@pytest.mark.parametrize("count", [0, 51])
async def test_one_to_fifty_files_are_shared_at_a_time(tmp_path: Path, count: int) -> None:
    with pytest.raises(ToolError, match="argument 'paths'"):
        await call(tmp_path, *(f"{number}.txt" for number in range(count)))


async def test_files_are_not_stored_without_a_place_for_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    context = CallContext(SessionId("s"), RunId("r"), "c", str(tmp_path), lambda _: None)
    with pytest.raises(ToolError, match="cannot be stored now"):
        await tool_box(tmp_path).run(context, "share_file", {"paths": ["a.txt"]})


async def test_files_are_stored_for_other_tools_as_attachments(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    stored: list[str] = []

    async def store(name: str, descriptor: int) -> Attachment:
        stored.append(name)
        size = os.fstat(descriptor).st_size
        return Attachment(name, "text/plain", "attachment:abc", "abc", size)

    context = CallContext(SessionId("s"), RunId("r"), "c", str(tmp_path), lambda _: None, store)
    box = tool_box(tmp_path)
    [file] = await box.store_files(context, ["a.txt", "./a.txt"])
    assert (file.name, file.size, stored) == ("a.txt", 3, ["a.txt"])
    for path, sentence in (
        ("link", "outside the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("../a.txt", "contains '..'"),
        ("fifo", "is not a regular file"),
        (".", "is a folder"),
        ("gone", "does not exist"),
    ):
        with pytest.raises(ToolError, match=sentence):
            await box.store_files(context, ["a.txt", path])
    with pytest.raises(ToolError, match="51 files are too many"):
        await box.store_files(context, ["a.txt"] * 51)
    for rule, path in (
        ("read_file(*.txt)", "a.txt"),
        ("read_file(*.txt)", "./a.txt"),
        ("share_file", "a.txt"),
        ("read_file(a.txt)", str(tmp_path / "a.txt")),
    ):
        with pytest.raises(ToolError, match="is denied by the rule"):
            await box.store_files(context, [path], deny=[rule])
    assert await box.store_files(context, ["a.txt"], deny=["read_file(b.txt)", "shell"])
