"""Commands that a person writes."""

import os
from pathlib import Path

import pytest

from internal.channels.cli.repl.commands.custom import UnusableCommand, load_commands


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("Fix $1 and $2: $ARGUMENTS", "a b c", "Fix a and b: a b c"),
        ("Fix $1, $9.", "", "Fix , ."),
        ("Fix it.", "soon", "Fix it.\n\nsoon"),
        ("Fix it.", "", "Fix it."),
        ("$1", "$2 $ARGUMENTS", "$2"),
        ("Costs $10", "a", "Costs a0"),
    ],
)
def test_arguments_replace_placeholders_once(
    tmp_path: Path, text: str, arguments: str, expected: str
) -> None:
    (tmp_path / "Fix.md").write_text(text)
    ((command,), problems) = load_commands(tmp_path, ())
    assert (command.name, command.expand(arguments), problems) == ("fix", expected, [])


def test_a_description_is_the_front_matter_or_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\r\nname: x\r\ndescription: 'Does a'\r\n---\r\nText")
    (tmp_path / "b.md").write_text("First\x1b[2J line\nsecond")
    commands, _ = load_commands(tmp_path, ())
    assert [one.description for one in commands] == ["Does a", "First\\u001b[2J line"]
    assert commands[0].text == "Text"


def test_files_that_are_no_commands_are_named(tmp_path: Path) -> None:
    (tmp_path / "help.md").write_text("mine")
    (tmp_path / "two words.md").write_text("x")
    (tmp_path / "open.md").write_text("---\ndescription: x")
    (tmp_path / "empty.md").write_text("---\n---\n \n")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe")
    (tmp_path / "large.md").write_text("x" * 100_001)
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "other.txt").write_text("x")
    commands, problems = load_commands(tmp_path, {"help"})
    assert not commands
    assert problems == [
        UnusableCommand("binary.md", "custom_unreadable"),
        UnusableCommand("empty.md", "custom_empty"),
        UnusableCommand("folder.md", "custom_unreadable"),
        UnusableCommand("help.md", "custom_taken"),
        UnusableCommand("large.md", "custom_unreadable"),
        UnusableCommand("open.md", "custom_front_matter"),
        UnusableCommand("pipe.md", "custom_unreadable"),
        UnusableCommand("two words.md", "custom_name"),
    ]
    assert load_commands(tmp_path / "none", ()) == ([], [])
