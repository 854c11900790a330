"""Extra text pasted around keys and addresses."""

import pytest

from internal.settings.entered_text import clean_address, clean_key

KEY = "sk-proj-Abc_123-xyz=="


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        (KEY, ()),
        (f" {KEY}\t", ("blanks",)),
        (f"{KEY}\n", ("a line break",)),
        (f'"{KEY}"', ("quotes",)),
        (f"“{KEY}”", ("quotes",)),
        (f"'{KEY}", ("quotes",)),
        (f"Bearer {KEY}", ("“Bearer”",)),
        (f"bearer  {KEY}", ("“Bearer”",)),
        (f"Authorization: Bearer {KEY}", ("the name of a header", "“Bearer”")),
        (f'-H "x-api-key: {KEY}"', ("quotes", "the name of a header")),
        (f"export OPENAI_API_KEY='{KEY}'\n", ("a line break", "the name of a variable", "quotes")),
        (f"OPENAI_API_KEY={KEY}", ("the name of a variable",)),
        (f'$env:MOONSHOT_API_KEY = "{KEY}"', ("quotes", "the name of a variable")),
        (f'api_key: "{KEY}",', ("the name of a variable", "punctuation", "quotes")),
        (f"\ufeff{KEY}\u200b", ("blanks",)),
    ],
)
def test_what_is_around_a_key_is_left_out_and_named(text: str, removed: tuple[str, ...]) -> None:
    found = clean_key(text)
    assert found.value == KEY
    assert sorted(found.removed) == sorted(removed)


@pytest.mark.parametrize(
    "key", ["two words", "a=b", "ABC=def", "line\nbreak", "Bearer", "", "k:v", "sk-é"]
)
def test_a_key_itself_is_not_changed(key: str) -> None:
    assert clean_key(key) == (key, ())


@pytest.mark.parametrize(
    "text",
    [
        " http://host:8000/v1 ",
        '"http://host:8000/v1"',
        "<http://host:8000/v1>",
        "export OPENAI_BASE_URL=http://host:8000/v1",
        "base_url: 'http://host:8000/v1'",
        "curl http://host:8000/v1",
        "`http://host:8000/v1`,",
    ],
)
def test_what_is_around_an_address_is_left_out(text: str) -> None:
    found = clean_address(text)
    assert found.value == "http://host:8000/v1"
    assert found.removed


def test_what_was_left_out_is_a_sentence_without_the_key() -> None:
    found = clean_key(f'export OPENAI_API_KEY="Bearer {KEY}"\n')
    assert found.sentence("the key").startswith("Left out around the key: a line break, ")
    assert KEY not in found.sentence("the key")
    assert clean_key(KEY).sentence("the key") == ""
