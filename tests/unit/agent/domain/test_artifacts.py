"""Artifacts: the types of files, and the names and captions that people see."""

import pytest

from internal.agent.domain.artifacts import (
    MAX_CAPTION_CHARACTERS,
    MAX_NAME_BYTES,
    UNKNOWN_MEDIA_TYPE,
    ArtifactType,
    artifact_type,
    display_caption,
    display_name,
    media_type_of,
)
from internal.agent.domain.text import find_invisible

PNG = b"\x89PNG\r\n\x1a\n...."
OTHER = ("other", UNKNOWN_MEDIA_TYPE)


@pytest.mark.parametrize(
    ("name", "head", "kind", "media_type"),
    [
        ("chart.PNG", PNG, "image", "image/png"),
        ("photo.jpeg", b"\xff\xd8\xff\xe0", "image", "image/jpeg"),
        ("logo.svg", b"<svg>", "image", "image/svg+xml"),
        ("report.pdf", b"%PDF-1.7", "document", "application/pdf"),
        ("data.csv", b"", "table", "text/csv"),
        ("notes.md", b"# Notes", "text", "text/markdown"),
        ("page.html", b"<p>", "code", "text/html"),
        ("main.rs", b"fn main", "code", "text/plain"),
        ("a.tar.gz", b"\x1f\x8b", "archive", "application/gzip"),
        ("voice.mp3", b"ID3", "audio", "audio/mpeg"),
        ("film.mp4", b"....ftyp", "video", "video/mp4"),
        ("Makefile", b"all:\n\ttrue", "text", "text/plain"),
        ("notes.unknown", "半".encode()[:-1], "text", "text/plain"),
        ("data", b"a\0b", *OTHER),
        ("data", b"\xff\xfe", *OTHER),
        ("empty", b"", *OTHER),
    ],
)
def test_the_type_follows_from_the_extension_else_from_the_first_bytes(
    name: str, head: bytes, kind: ArtifactType, media_type: str
) -> None:
    assert media_type_of(name, head) == media_type
    assert artifact_type(name, media_type) == kind


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.gif", "x.webp"])
def test_a_file_that_only_claims_to_be_a_picture_is_of_unknown_type(name: str) -> None:
    media_type = media_type_of(name, b"<script>alert(1)</script>")
    assert (artifact_type(name, media_type), media_type) == OTHER


@pytest.mark.parametrize("name", ["chart.png", "charts/2026 Q1.png", "報告 v2.docx", "é.txt"])
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert display_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["a\u202egnp.exe", "a\nb.txt", "a\x1b[2J.md", "z\u200bero.md", "bad\udcff.bin", " pad.md "],
)
def test_a_name_that_misleads_is_cleaned_and_stays_distinct(name: str) -> None:
    shown = display_name(name)
    assert not find_invisible(shown)
    assert shown == shown.strip()
    assert shown.encode().isascii()
    assert shown != display_name(f"x{name}")
    assert shown == display_name(name)
    assert shown.rpartition(".")[2] == name.strip().rpartition(".")[2]


def test_two_names_that_are_cleaned_to_the_same_text_stay_two() -> None:
    assert display_name("a\u202eb.txt") != display_name("a\u202db.txt")


@pytest.mark.parametrize("name", [f"{'鹭' * 300}.png", f"{'a/' * 300}b.png", "a." + "b" * 400])
def test_a_long_name_is_cut_and_keeps_its_extension(name: str) -> None:
    shown = display_name(name)
    assert len(shown.encode()) <= MAX_NAME_BYTES
    assert shown != display_name(f"{name}x")
    assert shown.endswith(".png") is name.endswith(".png")


def test_a_caption_is_one_bounded_line() -> None:
    assert display_caption("  Sales\n\tby \u202eregion ") == "Sales by region"
    assert len(display_caption("x" * 1000)) == MAX_CAPTION_CHARACTERS
