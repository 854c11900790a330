"""Databases that were moved are not opened."""

import pytest

from internal.agent.domain.errors import StoreCorrupt
from internal.storage.moves import check_move


def test_a_moved_database_names_its_new_place() -> None:
    with pytest.raises(StoreCorrupt, match=r"a was moved to b at noon\. Set database\.url"):
        check_move("a", "to", "b", "noon")


def test_the_target_of_a_move_is_opened_once_that_is_finished() -> None:
    with pytest.raises(StoreCorrupt, match=r"The move from b into the database a is not finished"):
        check_move("a", "from", "b", "")
    check_move("a", "from", "b", "noon")
