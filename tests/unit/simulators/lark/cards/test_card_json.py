from typing import Any

import pytest

from internal.simulators.lark.cards.card_json import (
    MAX_TABLES,
    check_card,
    find_part,
    is_shared,
    iter_parts,
    sibling_list,
)
from internal.simulators.lark.errors import CardError

TABLE = "| a |\n|---|\n| 1 |\n\n"


def card(*elements: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"schema": "2.0", "config": config, "body": {"elements": list(elements)}}


def text(content: str = "x", **more: Any) -> dict[str, Any]:
    return {"tag": "markdown", "content": content, **more}


@pytest.mark.parametrize(
    "invalid",
    [
        [],
        {"schema": "2.0"},
        card({"tag": "unknown"}),
        card(text(element_id="1x")),
        card(text(element_id="a"), text(element_id="a")),
        card(text(TABLE * (MAX_TABLES + 1))),
        card({"tag": "form", "name": "f", "elements": [text()]}),
    ],
)
def test_invalid_cards_are_rejected(invalid: Any) -> None:
    with pytest.raises(CardError):
        check_card(invalid)


def test_tables_in_code_blocks_do_not_count() -> None:
    check_card(card(text(f"```\n{TABLE * (MAX_TABLES + 1)}```\n")))


def test_elements_are_found_by_id_with_their_siblings() -> None:
    shown = card(text(), text("second", element_id="b"))
    part = find_part(shown, "b")
    assert part is not None
    assert part.value["content"] == "second"
    assert sibling_list(shown, part) is shown["body"]["elements"]
    assert find_part(shown, "c") is None
    assert len(list(iter_parts(shown))) == 2


def test_only_cards_with_update_multi_are_shared() -> None:
    assert is_shared(card(update_multi=True))
    assert not is_shared(card(update_multi="yes"))
