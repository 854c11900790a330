import socket

import pytest

from internal.simulators.lark.server import listen


def test_port_zero_selects_a_free_port_and_a_used_one_is_refused() -> None:
    listening = listen(0)
    try:
        host, port = listening.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(OSError, match="in use"):
            listen(port)
    finally:
        listening.close()
    assert isinstance(listening, socket.socket)
