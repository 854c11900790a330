"""Completion of commands, values and file names."""

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from internal.channels.cli.repl.completion import SessionCompleter
from internal.channels.commands.command import Value

COMMANDS = {"help": "show help", "model": "change the model", "模型": "change the model"}
VALUES = {"model": [Value("small", "fast\x1b[1m"), Value("large")]}


def completed(text: str, folder: Path = Path()) -> list[str]:
    """Return the whole inputs that completing a text may give."""
    completer = SessionCompleter(folder, lambda: COMMANDS, lambda name: VALUES.get(name, []))
    found = completer.get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + one.start_position] + one.text for one in found]


def test_commands_are_completed_by_prefix_in_any_case() -> None:
    assert completed("/") == ["/help", "/model", "/模型"]
    assert completed("/M") == ["/model"]
    assert completed("/模") == ["/模型"]
    assert completed("/none") == []


def test_the_values_of_a_command_are_completed_after_a_blank() -> None:
    assert completed("/model ") == ["/model small", "/model large"]
    assert completed("/model la") == ["/model large"]
    assert completed("/help x") == []


def test_the_values_of_a_command_are_filtered_by_parts_of_name_and_description() -> None:
    assert completed("/model ar") == ["/model large"]
    assert completed("/model FAS sm") == ["/model small"]
    assert completed("/model sm lar") == []


def test_descriptions_of_values_contain_no_controls() -> None:
    completer = SessionCompleter(Path(), dict, lambda _name: VALUES["model"])
    first, _ = completer.get_completions(Document("/model "), CompleteEvent())
    assert "\x1b" not in first.display_meta_text


def test_a_message_of_several_lines_is_no_command() -> None:
    assert completed("/he\n") == []
    assert completed("text /he") == []


def test_file_names_are_completed_after_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("src/main.py", "setup.py", ".env", "a\nb"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert completed("read @", tmp_path) == ["read @setup.py", "read @src/"]
    assert completed("read @sr", tmp_path) == ["read @src/"]
    assert completed("read @src/m", tmp_path) == ["read @src/main.py"]
    assert completed("read @.e", tmp_path) == ["read @.env"]
    assert completed("read @none/", tmp_path) == []
    assert completed("read @src ", tmp_path) == []
    assert completed("@\0", tmp_path) == []
