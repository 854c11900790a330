"""A server with fixed answers, in place of a gateway."""

import threading
from collections.abc import Iterator

import pytest

from tests.support.http_answers import AnsweringServer


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()
