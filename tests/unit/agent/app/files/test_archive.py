"""ZIP archives that are made while they are sent."""

import io
import zipfile
from collections.abc import AsyncIterator

import pytest

from internal.agent.app.files.archive import portable_name, zip_artifacts
from internal.agent.domain.artifacts import Artifact, ArtifactType
from tests.support.store_records import an_artifact


def made(name: str, kind: ArtifactType, created: str = "2026-01-31T08:00:02.000Z") -> Artifact:
    return an_artifact(name=name, type=kind, sha256=name, created=created)


async def test_files_are_read_one_after_the_other_and_only_when_the_archive_is() -> None:
    read: list[str] = []

    async def content(sha256: str) -> AsyncIterator[bytes]:
        for number in range(3):
            read.append(f"{sha256} {number}")
            yield bytes([number]) * 300_000

    files = [made("a/b.txt", "text"), made("c.png", "image", "1970-01-01T00:00:00.000Z")]
    archive, most = b"", 0
    async for piece in zip_artifacts(files, content):
        if not archive:
            assert read == ["a/b.txt 0"]
        archive += piece
        most = max(most, len(piece))
    assert most < 300_000
    opened = zipfile.ZipFile(io.BytesIO(archive))
    assert opened.testzip() is None
    whole = b"".join(bytes([number]) * 300_000 for number in range(3))
    assert {name: opened.read(name) for name in opened.namelist()} == dict.fromkeys(
        ("a/b.txt", "c.png"), whole
    )
    text, picture = opened.infolist()
    assert text.compress_size < 10_000
    assert picture.compress_size == len(whole)  # it is compressed already
    assert (text.date_time, picture.date_time[0]) == ((2026, 1, 31, 8, 0, 2), 1980)


async def test_an_archive_without_files_is_valid() -> None:
    async def nothing(_sha256: str) -> AsyncIterator[bytes]:
        yield b""

    archive = b"".join([piece async for piece in zip_artifacts([], nothing)])
    assert zipfile.ZipFile(io.BytesIO(archive)).namelist() == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.txt", "report.txt"),
        ("图表/a b.png", "图表/a b.png"),
        (".hidden", ".hidden"),
        ("..\\..\\evil.bat", ".._.._evil.bat"),
        ("C:\\evil.bat", "C__evil.bat"),
        ("a.txt:stream", "a.txt_stream"),
        ("CON", "_CON"),
        ("sub/nul.txt", "sub/_nul.txt"),
        ("com¹.log", "_com¹.log"),
        ("console.txt", "console.txt"),
        ("NUL .txt", "_NUL .txt"),
        ("../../x", "_/_/x"),
        ("/etc/x", "_/etc/x"),
        ("a/./b", "a/_/b"),
        ("name. ", "name"),
        ("what?*.txt", "what__.txt"),
        ("a\x01b", "a_b"),
    ],
)
def test_a_name_leads_nowhere_on_any_system(name: str, safe: str) -> None:
    assert portable_name(name, set()) == safe


def test_names_that_windows_does_not_tell_apart_are_numbered() -> None:
    taken: set[str] = set()
    names = ("a/B.txt", "a/b.TXT", "a/b?.txt", "a/b*.txt", "a/b.txt.")
    made = [portable_name(name, taken) for name in names]
    assert made == ["a/B.txt", "a/b (2).TXT", "a/b_.txt", "a/b_ (2).txt", "a/b (3).txt"]
