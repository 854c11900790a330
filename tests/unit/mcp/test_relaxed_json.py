"""JSON of editors."""

import json

import pytest

from internal.mcp.relaxed_json import parse_relaxed


@pytest.mark.parametrize(
    ("text", "value", "is_plain"),
    [
        ('\ufeff{"a": 1}', {"a": 1}, True),
        ('{"a": 1, // one\n}', {"a": 1}, False),
        ('{"a": [1, /* , */ ], "b": "// \\" ,]"}', {"a": [1], "b": '// " ,]'}, False),
        ('// first\n{"url": "https://a/*b*/,}"}', {"url": "https://a/*b*/,}"}, False),
        ("[,]", None, False),
    ],
)
def test_comments_and_trailing_commas_are_no_part_of_the_value(
    text: str, value: object, is_plain: bool
) -> None:
    if value is None:
        assert parse_relaxed(text) == ([], False)
    else:
        assert parse_relaxed(text) == (value, is_plain)


def test_the_line_of_an_error_is_that_of_the_text() -> None:
    with pytest.raises(json.JSONDecodeError) as found:
        parse_relaxed('{\n/* one\ntwo */\n"a": oops\n}')
    assert found.value.lineno == 4
