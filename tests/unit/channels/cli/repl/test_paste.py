"""Placeholders for long pastes, and what is sent for them."""

from internal.channels.cli.repl.paste import PasteBuffer


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
