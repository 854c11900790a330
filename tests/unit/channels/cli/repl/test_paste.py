"""Placeholders for long pastes and the text sent in their place."""

from pathlib import Path

import pytest

from internal.channels.cli.input_files import InputFile
from internal.channels.cli.repl.paste import PasteBuffer, pasted_paths


def buffer() -> PasteBuffer:
    return PasteBuffer(lambda number, lines: f"paste {number}: {lines}")


def test_a_short_paste_is_inserted_as_it_is() -> None:
    assert buffer().add("one\r\ntwo\rthree") == "one\ntwo\nthree"


def test_a_long_paste_becomes_a_placeholder_that_is_expanded() -> None:
    pastes, text = buffer(), "line\n" * 20
    placeholder = pastes.add(text)
    assert placeholder == "[paste 1: 21]"
    assert pastes.add("x" * 900) == "[paste 2: 1]"
    assert pastes.expand(f"see {placeholder}!") == f"see {text}!"
    assert pastes.expand_to_files(f"see {placeholder}!") == (f"see {text}!", [])


def test_a_very_long_paste_is_sent_as_a_file() -> None:
    pastes = buffer()
    first, second, deleted = (pastes.add(letter * 100_001) for letter in "模bc")
    text, files = pastes.expand_to_files(f"{second} and {first}")
    assert text == "[pasted-2.txt] and [pasted-1.txt]"
    assert [(file.name, file.content[:3].decode()) for file in files] == [
        ("pasted-1.txt", "模"),
        ("pasted-2.txt", "bbb"),
    ]
    assert deleted not in text


def test_a_file_is_sent_while_its_placeholder_is_in_the_text() -> None:
    pastes = buffer()
    one, other = (
        InputFile("a.pdf", "application/pdf", 3, path) for path in ("/x/a.pdf", "/y/a.pdf")
    )
    assert [pastes.add_file(file) for file in (one, other, one)] == [
        "[a.pdf]",
        "[a.pdf 2]",
        "[a.pdf]",
    ]
    assert pastes.expand_to_files("read [a.pdf 2]") == ("read [a.pdf 2]", [other])
    assert pastes.expand_to_files("nothing") == ("nothing", [])


def test_pasted_pictures_are_numbered() -> None:
    pastes = buffer()
    assert [pastes.add_picture(b"one"), pastes.add_picture(b"two")] == [
        "[picture-1.png]",
        "[picture-2.png]",
    ]
    assert [file.content for file in pastes.expand_to_files("[picture-2.png]")[1]] == [b"two"]


@pytest.mark.parametrize(
    "written",
    ["{path}", " {path}\n", "'{path}'", '"{path}"', "{escaped}", "{url}", "{path}x \n{path}y"],
)
def test_pasted_paths_of_existing_files_are_recognized(tmp_path: Path, written: str) -> None:
    path = tmp_path / "my report.pdf"
    path.write_bytes(b"x")
    assert pasted_paths(
        written.format(path=path, escaped=str(path).replace(" ", "\\ "), url=path.as_uri())
    ) == ([] if "x" in written else [str(path)])


def test_several_dropped_files_are_recognized(tmp_path: Path) -> None:
    paths = [tmp_path / "a b.png", tmp_path / "c.csv"]
    for path in paths:
        path.write_bytes(b"x")
    assert pasted_paths(f"'{paths[0]}' {paths[1]}") == [str(path) for path in paths]
    assert pasted_paths(f"{paths[0].as_uri()}\n{paths[1].as_uri()}\n") == [
        str(path) for path in paths
    ]


@pytest.mark.parametrize(
    "text",
    ["", "/help", "README.md", "/", "see {file}", "file://elsewhere{file}", "'open", "{file} /no"],
)
def test_other_text_is_no_path(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(b"x")
    assert pasted_paths(text.format(file=file)) == []
