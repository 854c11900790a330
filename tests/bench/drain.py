"""Readers that only drain their sockets. ``python -m tests.bench.drain PORT TOKEN PATH COUNT``.

Prints ``ready`` when all have the backlog behind them, and a line for each event that ends, with
the bytes that came since the one before.
"""

import resource
import selectors
import socket
import sys

from tests.bench.fanout import END, READY

_TAIL = 64


class Readers:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._tails: dict[socket.socket, bytes] = {}
        self._bytes = 0

    def connect(self, port: int, token: str, path: str) -> None:
        reader = socket.create_connection(("127.0.0.1", port))
        reader.sendall(
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            f"authorization: Bearer {token}\r\n\r\n".encode()
        )
        reader.setblocking(False)
        self._selector.register(reader, selectors.EVENT_READ)
        self._tails[reader] = b""

    def until(self, word: bytes) -> int:
        """Drain until every reader got the word; return the bytes that came."""
        waiting, before = set(self._tails), self._bytes
        while waiting:
            for key, _ in self._selector.select():
                reader = key.fileobj
                assert isinstance(reader, socket.socket)
                data = reader.recv(262_144)
                assert data, "the stream ended"
                self._bytes += len(data)
                seen = self._tails[reader] + data
                self._tails[reader] = seen[-_TAIL:]
                if word in seen:
                    waiting.discard(reader)
                    self._tails[reader] = b""
        return self._bytes - before


def main() -> None:
    port, token, path, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    readers = Readers()
    for _ in range(count):
        readers.connect(port, token, path)
    readers.until(READY)
    _say("ready")
    while True:
        _say(readers.until(END.encode()))


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    main()
