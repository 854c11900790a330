"""Requests and streams over HTTP."""

import pytest

from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import RefusedStream, Unreachable
from internal.channels.cli.transports.sse import StreamParser
from tests.support.http_answers import AnsweringServer


def test_stream_is_requested_after_the_last_event(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (200, b"id: abc-7\nevent: x\ndata: {}\n\n")
    parser = StreamParser()
    received = HttpEndpoint(server.url, lambda: "t").stream("/api/sse", "abc-6")
    frames = [frame for piece in received for frame in parser.feed(piece)]
    assert [(frame.id, frame.data) for frame in frames] == [("abc-7", b"{}")]
    assert server.asked == [("GET", "/api/sse", "abc-6")]


def test_refused_stream_has_its_response(server: AnsweringServer) -> None:
    server.answers["/api/sse"] = (404, b"{}")
    with pytest.raises(RefusedStream) as refused:
        list(HttpEndpoint(server.url, lambda: "t").stream("/api/sse", ""))
    assert refused.value.response == (404, b"{}")


def test_closed_port_is_unreachable() -> None:
    endpoint = HttpEndpoint("http://127.0.0.1:1", lambda: "t")
    assert not endpoint.answers()
    with pytest.raises(Unreachable):
        endpoint.request("GET", "/api/tasks")
    with pytest.raises(Unreachable):
        endpoint.request("POST", "/api/tasks/task-1/stop")


@pytest.mark.parametrize(
    "url", ["", "localhost:1", "ftp://127.0.0.1", "http://[::1", "http://x:99999"]
)
def test_invalid_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(CliExit) as exit_:
        HttpEndpoint(url, lambda: "t")
    assert exit_.value.code == 2


@pytest.mark.parametrize(
    "url",
    [
        *("http://10.0.0.1:8420", "http://[::ffff:10.0.0.1]:8420", "http://[64:ff9b::127.0.0.1]"),
        *("http://0.0.0.0:8420", "http://localhost.example.org", "http://example.com[::1]:8420"),
    ],
)
def test_the_token_is_not_sent_to_another_machine_unencrypted(url: str) -> None:
    with pytest.raises(CliExit):
        HttpEndpoint(url, lambda: "t")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_every_address_of_this_machine_is_accepted(host: str) -> None:
    assert HttpEndpoint(f"http://{host}:8420/", lambda: "t").url == f"http://{host}:8420"
