"""Interpretation of Lark's responses: data, a rejection, or another attempt later."""

import pytest
from multidict import CIMultiDict

from internal.agent.domain.errors import LarkspurError
from internal.channels.lark.api import LarkRejected, LarkUnavailable, as_json, read_response
from internal.egress.messages import SessionResponse


def response(status: int, body: str, headers: dict[str, str] | None = None) -> SessionResponse:
    return SessionResponse(status, CIMultiDict(headers or {}), body.encode())


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
        (500, '{"code": 1}', False),
        (500, '{"code": 0}', True),
        (504, '{"code": 2200}', True),
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


@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.parametrize(
    ("headers", "error"),
    [({"X-Tt-Logid": "2026abc"}, "{}"), ({}, '{"log_id": "2026abc"}')],
    ids=["header", "body"],
)
def test_a_failure_keeps_the_log_id(status: int, headers: dict[str, str], error: str) -> None:
    body = f'{{"code": 230001, "msg": "x", "error": {error}}}'
    with pytest.raises(LarkspurError) as raised:
        read_response(response(status, body, headers))
    assert isinstance(raised.value, LarkRejected | LarkUnavailable)
    assert raised.value.log_id == "2026abc"
    assert "(log id 2026abc)" in str(raised.value)


def test_a_failure_without_json_keeps_the_log_id_of_the_header() -> None:
    with pytest.raises(LarkUnavailable) as raised:
        read_response(response(502, "<html>", {"x-tt-logid": "2026abc"}))
    assert raised.value.log_id == "2026abc"


@pytest.mark.parametrize("value", ["", "a b", "x" * 101, "<script>"])
def test_a_malformed_log_id_is_ignored(value: str) -> None:
    with pytest.raises(LarkRejected) as raised:
        read_response(response(400, '{"code": 230001, "msg": "x"}', {"x-tt-logid": value}))
    assert raised.value.log_id == ""
    assert str(raised.value).endswith("x")
