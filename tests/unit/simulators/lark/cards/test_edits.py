from typing import Any

import pytest

from internal.simulators.lark.cards.edits import (
    add_elements_edit,
    delete_elements_edit,
    find_element,
    merge_settings,
    patch_element_edit,
    read_json_field,
    replace_element_edit,
)
from internal.simulators.lark.errors import LarkError


def card() -> dict[str, Any]:
    elements = [{"tag": "hr", "element_id": "a"}, {"tag": "hr", "element_id": "b"}]
    return {"schema": "2.0", "body": {"elements": elements}}


def ids(shown: dict[str, Any]) -> list[str]:
    return [element["element_id"] for element in shown["body"]["elements"]]


@pytest.mark.parametrize(
    ("where", "target", "expected"),
    [
        ("insert_before", "b", ["a", "n", "b"]),
        ("insert_after", "a", ["a", "n", "b"]),
        ("append", "", ["a", "b", "n"]),
        ("insert_before", "", ["n", "a", "b"]),
    ],
)
def test_elements_are_added_where_requested(where: str, target: str, expected: list[str]) -> None:
    shown = card()
    new = [{"tag": "hr", "element_id": "n"}]
    add_elements_edit({"elements": new, "type": where, "target_element_id": target})(shown)
    assert ids(shown) == expected


def test_elements_are_replaced_patched_and_deleted() -> None:
    shown = card()
    replace_element_edit({"element": {"tag": "hr", "element_id": "c"}, "element_id": "a"})(shown)
    patch_element_edit({"partial_element": {"margin": "1px"}, "element_id": "c"})(shown)
    assert find_element(shown, "c")["margin"] == "1px"
    delete_elements_edit({"element_ids": ["b"]})(shown)
    assert ids(shown) == ["c"]
    with pytest.raises(LarkError):
        delete_elements_edit({"element_ids": ["b"]})(shown)


def test_invalid_parameters_are_rejected_before_anything_changes() -> None:
    for edit, params in (
        (add_elements_edit, {"elements": [{}], "type": "append"}),
        (add_elements_edit, {"elements": [], "type": "sideways"}),
        (patch_element_edit, {"partial_element": {"tag": "hr"}}),
        (delete_elements_edit, {"element_ids": "a"}),
    ):
        with pytest.raises(LarkError):
            edit(params)
    with pytest.raises(LarkError):
        merge_settings(card(), {"body": {}})
    with pytest.raises(LarkError):
        read_json_field("{", dict, "settings")
