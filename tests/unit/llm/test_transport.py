"""API keys, and errors of a client before a request is sent."""

import gzip
import subprocess
import sys
import traceback
from typing import Never

import pytest

from internal.agent.domain.errors import ModelError, ModelKeyRejected, ModelRejected
from internal.agent.domain.secrets import MASK
from internal.llm.transport import (
    MAX_BODY_BYTES,
    ApiKey,
    ProviderErrorResponse,
)
from tests.support.model_transport import client_with, refused
from tests.support.raw_server import raw_server, response

CANARY = "sk-canary-0123456789"


def test_a_key_is_shown_only_by_reveal() -> None:
    key = ApiKey(CANARY)
    assert key.reveal() == CANARY
    shown = f"{key} {key!r} {[key]}"
    assert CANARY not in shown
    assert repr(ApiKey("")) != repr(key)


def test_a_key_is_masked_in_errors() -> None:
    ApiKey(CANARY)
    error = ModelError(f"{CANARY} is wrong", detail=f"401 {CANARY}")
    assert (str(error), error.detail) == (f"{MASK} is wrong", f"401 {MASK}")


@pytest.mark.parametrize(
    ("value", "usable"),
    [(CANARY, True), ("", False), ("a b", False), ("a\n", False), ("schlüssel", False)],
)
def test_a_usable_key_fits_into_a_header(value: str, usable: bool) -> None:
    assert ApiKey(value).usable is usable


def test_only_a_required_key_may_not_be_missing() -> None:
    client_with(CANARY).check_key(needed=True)
    client_with("").check_key(needed=False)
    with pytest.raises(ModelKeyRejected, match="No API key for Acme: set ACME_API_KEY"):
        client_with("").check_key(needed=True)
    with pytest.raises(ModelKeyRejected, match="invalid characters"):
        client_with("a b").check_key(needed=False)


def never_called(response: ProviderErrorResponse) -> Never:
    raise AssertionError(response)


async def test_an_address_that_cannot_be_used_is_one_sentence_for_every_call() -> None:
    client = client_with(CANARY, "http://host:port")
    client.preload()
    for _ in range(2):
        with pytest.raises(ModelError) as error:
            await client.post("/chat", b"{}", never_called)
        assert isinstance(error.value, ModelRejected)
        assert str(error.value).startswith("Cannot create the client for Acme: Invalid URL: port")
        assert "port" in error.value.detail
        assert CANARY not in "".join(traceback.format_exception_only(error.value))
    await client.close()


async def test_a_proxy_that_is_not_supported_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:word@proxy.example")
    client = client_with(CANARY, "http://model.example")
    with pytest.raises(ModelRejected, match=r"socks5://proxy\.example of the env") as error:
        await client.post("/chat", b"{}", never_called)
    assert "word" not in str(error.value)
    await client.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (response(b'{"error": "no"}', status=400), "400 {'error': 'no'} 15"),
        (
            response("输入过长".encode("gbk"), "content-type: text/plain; charset=GBK", status=400),
            "400 输入过长 4",
        ),
        (response(b" \xff ", "content-type: text/html; charset=x", status=500), "500 \ufffd 1"),
        (
            response(gzip.compress(b"packed"), "content-encoding: gzip", status=429),
            "429 packed 6",
        ),
        (response(b"x" * 6_000_000, status=502), f"502 {'x' * 40} {MAX_BODY_BYTES}"),
        (response(b"moved", status=302), "302 moved 5"),
    ],
    ids=["json", "gbk", "unknown charset", "gzip", "too large", "redirect"],
)
async def test_the_body_of_an_error_is_read(answer: bytes, says: str) -> None:
    async with raw_server(answer) as server:
        client = client_with(CANARY, f"http://127.0.0.1:{server.port}/v1/")
        with pytest.raises(ModelError) as error:
            await client.post("/chat", b"{}", refused)
        assert str(error.value) == says
        assert server.requests[0].startswith(b"POST /v1/chat HTTP/1.1\r\n")
        await client.close()


_EXIT = """
import atexit, sys
from tests.support.model_transport import client_with

atexit.register(lambda: print("internal.egress.session" in sys.modules))
client_with("k-0123").preload()
"""


def test_a_process_ends_after_its_imports() -> None:
    """It may crash if a thread still imports or reads certificates when OpenSSL is unloaded."""
    ended = subprocess.run(
        [sys.executable, "-c", _EXIT], check=True, capture_output=True, text=True
    )
    assert ended.stdout == "True\n"
