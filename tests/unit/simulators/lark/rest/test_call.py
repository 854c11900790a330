from dataclasses import replace
from typing import Any

import pytest

from internal.simulators.lark.errors import LarkError
from tests.unit.simulators.lark import make_call


def test_a_page_names_the_next_one_until_the_last() -> None:
    call = replace(make_call(), query={"page_size": "2"})
    first = call.page([1, 2, 3])
    assert (first["items"], first["has_more"], first["page_token"]) == ([1, 2], True, "2")
    last = replace(call, query={"page_size": "2", "page_token": "2"}).page([1, 2, 3])
    assert (last["items"], last["has_more"], last["page_token"]) == ([3], False, "")


@pytest.mark.parametrize(
    "query", [{"page_size": "0"}, {"page_size": "51"}, {"page_size": "x"}, {"page_token": "-1"}]
)
def test_invalid_pages_are_rejected(query: dict[str, str]) -> None:
    with pytest.raises(LarkError):
        replace(make_call(), query=query).page([])


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": 7}])
def test_a_required_text_must_be_a_non_empty_string(body: dict[str, Any]) -> None:
    with pytest.raises(LarkError):
        make_call(body).text("name")


def test_a_uuid_has_at_most_fifty_characters() -> None:
    assert make_call({"uuid": "u" * 50}).uuid() == "u" * 50
    assert make_call().uuid() == ""
    with pytest.raises(LarkError):
        make_call({"uuid": "u" * 51}).uuid()


def test_a_choice_must_be_allowed() -> None:
    assert make_call().choice("sort", frozenset({"a"}), "a") == "a"
    with pytest.raises(LarkError):
        make_call().choice("sort", frozenset({"a"}))
