"""States of capabilities, read and written by versions that know different fields."""

from typing import ClassVar

import pytest

from internal.agent.domain.capability_states import CapabilityState, StoredState
from internal.agent.domain.errors import StoreCorrupt


class PondState(CapabilityState, frozen=True):
    capability: ClassVar[str] = "pond"

    herons: int = 0


class LaterPondState(PondState, frozen=True):
    version: ClassVar[int] = 2

    frogs: int = 0


def test_a_run_without_the_state_has_none() -> None:
    assert PondState.of({}) is None
    assert PondState.of({"lake": StoredState(1, {"herons": 2})}) is None


def test_an_earlier_version_keeps_what_it_does_not_know() -> None:
    lake = StoredState(7, {"depth": 3})
    later = LaterPondState(herons=1, frogs=9).added_to({"lake": lake})
    known = PondState.of(later)
    assert known == PondState(herons=1)
    assert known is not None
    written = PondState(herons=known.herons + 1).added_to(later)
    assert LaterPondState.of(written) == LaterPondState(herons=2, frogs=9)
    assert (written["pond"].version, written["lake"]) == (2, lake)


def test_a_later_version_reads_an_earlier_state() -> None:
    assert LaterPondState.of(PondState(herons=4).added_to({})) == LaterPondState(herons=4)


def test_a_field_of_another_type_is_refused() -> None:
    with pytest.raises(StoreCorrupt, match=r"state of pond cannot be read: Expected `int`"):
        PondState.of({"pond": StoredState(1, {"herons": "many"})})
