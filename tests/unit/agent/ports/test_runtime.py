"""The identity of a process as text."""

import pytest

from internal.agent.ports.runtime import ProcessIdentity

PROCESS = ProcessIdentity("gateway-1", 42, "1234", "4026531836", "boot-1", "host/with.dots")


def test_identity_survives_its_text() -> None:
    assert ProcessIdentity.parse(str(PROCESS)) == PROCESS


@pytest.mark.parametrize("owner", ["", "worker", "a/b/c/d/e/f", "a/-1/c/d/e/f", "a/1/c/d/e"])
def test_another_owner_is_no_process(owner: str) -> None:
    assert ProcessIdentity.parse(owner) is None
