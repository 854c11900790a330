"""What Lark's responses mean: data, a rejection, or another attempt later."""

import httpx
import pytest

from internal.channels.lark.api import LarkRejected, LarkUnavailable, as_json, read_response


def response(status: int, body: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, text=body, headers=headers)


def test_data_is_returned() -> None:
    assert read_response(response(200, '{"code": 0, "data": {"a": 1}}')).data == {"a": 1}


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, '{"code": 230001, "msg": "x"}'), (403, "<html>"), (200, '{"code": 7}')],
)
def test_a_rejection_is_final(status: int, body: str) -> None:
    with pytest.raises(LarkRejected):
        read_response(response(status, body))


@pytest.mark.parametrize(
    ("status", "body", "unconfirmed"),
    [
        (429, '{"code": 99991400}', False),
        (200, '{"code": 230020}', False),
        (502, "<html>", True),
        (500, '{"code": 1}', True),
        (200, "no json", True),
    ],
)
def test_an_unavailable_service_is_tried_again(status: int, body: str, unconfirmed: bool) -> None:
    with pytest.raises(LarkUnavailable) as error:
        read_response(response(status, body))
    assert error.value.unconfirmed is unconfirmed


@pytest.mark.parametrize(("reset", "wait"), [("7", 7.0), ("x", 0.0), ("-1", 0.0), ("9e9", 3600.0)])
def test_the_reset_header_gives_the_delay(reset: str, wait: float) -> None:
    with pytest.raises(LarkUnavailable) as error:
        read_response(response(429, '{"code": 99991400}', {"x-ogw-ratelimit-reset": reset}))
    assert error.value.wait == wait


def test_content_is_compact_json() -> None:
    assert as_json({"text": "你好"}) == '{"text":"你好"}'
