"""Signatures of requests, verified by a library of the standard."""

import base64
import hmac

import pytest
from pydantic import SecretStr
from standardwebhooks import Webhook, WebhookVerificationError

from internal.hooks.signature import make_secret, sign, suits_libraries
from internal.hooks.signed_post import SignedPoster
from internal.observability.clock import SystemClock
from tests import ROOT
from tests.support.hook_server import HookServer, Posted

BODY = b'{"event":"workflow.result.final","payload":"\xe4\xb8\x96"}'


async def posted(secret: str) -> Posted:
    poster = SignedPoster(SystemClock())
    async with HookServer() as server:
        await poster.post(
            server.url, BODY, message_id="evt-1", secret=SecretStr(secret), timeout_seconds=10
        )
        await poster.close()
    return server.requests[0]


@pytest.mark.parametrize(
    "secret",
    [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "0123456789abcdef" * 4,
        "s3cret",
        "correct-horse/battery_staple!",
    ],
)
async def test_a_library_verifies_with_the_secret_of_the_settings(secret: str) -> None:
    request = await posted(secret)
    assert Webhook(secret).verify(request.body, request.headers)["payload"] == "世"
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(request.body + b" ", request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret()).verify(request.body, request.headers)


@pytest.mark.parametrize("secret", ["abcde", "whsec_abcde", "!!!!"])
async def test_a_secret_that_is_no_base64_is_the_key_itself(secret: str) -> None:
    request = await posted(secret)
    assert Webhook(secret.encode()).verify(request.body, request.headers)
    assert not suits_libraries(secret)


@pytest.mark.parametrize("page", ["hooks.md", "hooks.zh.md"])
@pytest.mark.parametrize("secret", ["s3cret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
async def test_the_code_of_the_documents_verifies(page: str, secret: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    code = text.rpartition("```python\n")[2].partition("```")[0]
    request = await posted(secret)
    given = {
        "hmac": hmac,
        "base64": base64,
        "secret": secret.encode(),
        "id": request.headers["webhook-id"],
        "timestamp": request.headers["webhook-timestamp"],
        "signature": request.headers["webhook-signature"],
    }
    for body, is_valid in ((request.body, True), (request.body + b" ", False)):
        names = {**given, "body": body}
        exec(code, names)  # noqa: S102 - it is what people copy
        assert names["valid"] is is_valid


def test_the_signature_is_that_of_the_standard() -> None:
    # the example of the reference implementations of https://www.standardwebhooks.com
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_strict_libraries_take_valid_base64_only() -> None:
    assert suits_libraries(make_secret())
    assert suits_libraries("0123456789abcdef" * 4)
    assert not any(map(suits_libraries, ["s3cret", "whsec_", "whsec_MfK", "a-b_c-d_"]))
    assert len({make_secret() for _ in range(9)}) == 9
