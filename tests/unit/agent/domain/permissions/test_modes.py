"""The names and the order of the permission modes."""

import msgspec
import pytest

from internal.agent.domain.permissions.modes import EARLIER_NAMES, Mode
from internal.agent.domain.permissions.policy import Policy


@pytest.mark.parametrize(("earlier", "name"), EARLIER_NAMES.items())
def test_stored_policies_with_an_earlier_name_are_read(earlier: str, name: str) -> None:
    policy = msgspec.json.decode(f'{{"mode": "{earlier}"}}', type=Policy)
    assert policy.mode is Mode(name)
    assert msgspec.to_builtins(policy)["mode"] == name


def test_an_unknown_name_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"mode": "everything"}', type=Policy)


def test_each_mode_exceeds_those_before_it() -> None:
    assert [[mode.exceeds(other) for other in Mode].count(True) for mode in Mode] == [*range(6)]
