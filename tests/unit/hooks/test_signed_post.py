"""The signature of requests."""

from internal.hooks.signed_post import sign


def test_the_signature_is_that_of_the_standard() -> None:
    # the example of the reference implementations of https://www.standardwebhooks.com
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_any_other_secret_is_used_as_it_is() -> None:
    body = b"{}"
    plain = sign("a secret", "id", 1, body)
    assert plain == sign("whsec_YSBzZWNyZXQ=", "id", 1, body)
    assert plain != sign("a secret", "id", 2, body)
    assert plain != sign("a secret", "other", 1, body)
    assert sign("whsec_no base64!", "id", 1, body).startswith("v1,")
