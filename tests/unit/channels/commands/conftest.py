"""A channel that records the responses of commands."""

import pytest

from tests.support.shared_commands import KeptChannel


@pytest.fixture
def channel() -> KeptChannel:
    return KeptChannel()
