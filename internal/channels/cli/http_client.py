"""The HTTP door of a gateway, seen from the terminal. Standard library only."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from internal.channels.cli.exit_codes import CONFIG, FAILED, USAGE, CliExit
from internal.channels.cli.sse import StreamFrame, StreamParser

ANSWER_SECONDS = 30.0
HEALTH_SECONDS = 2.0
SILENCE_SECONDS = 40.0
"""A stream without a frame for this long is broken: the gateway sends one every 15 s."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_NO_CONTENT, _REFUSED, _NOT_FOUND, _CONFLICT, _TOO_MANY, _BROKEN = 204, 400, 404, 409, 429, 500


AGENT = "larkspur-cli"
"""What a terminal calls itself, so that the gateway can say through which door a person came."""


class Unreachable(Exception):
    """The gateway does not answer, or stopped answering. Its text says what happened."""


class Ended(Exception):
    """The task that was to be stopped has ended already."""


class Door:
    """Speaks to one gateway. Every request has a connection of its own: none is ever stale.

    Raises:
        Leave: the address cannot be used.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "User-Agent": AGENT,
        }
        try:
            parts = urlsplit(self.url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            parts, self._host, self._port = urlsplit(""), "", None
        if parts.scheme not in {"http", "https"} or not self._host:
            raise CliExit(USAGE, f"{url} is not an address such as http://127.0.0.1:8420.")
        if parts.scheme == "http" and self._host not in _LOOPBACK:
            raise CliExit(USAGE, f"{url} would send the token over the network unencrypted.")
        self._path = parts.path
        secure = parts.scheme == "https"
        self._connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection

    def answers(self) -> bool:
        """Say whether a gateway is there at all; a sick one answers too."""
        with closing(self._new(HEALTH_SECONDS)) as connection:
            try:
                connection.request("GET", f"{self._path}/health")
                return b"{" in connection.getresponse().read(65_536)
            except (OSError, http.client.HTTPException):
                return False

    def stranger(self) -> CliExit:
        """Say that somebody else answers there."""
        return CliExit(FAILED, f"{self.url} answers, but not as a gateway of Larkspur.")

    def get(self, path: str) -> Any:
        """Return the JSON found there; raises as `post` does."""
        return self._exchange("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON and return the JSON answer.

        Raises:
            Leave: the gateway refuses, with its sentence.
            Unreachable: there was no answer; it may have been done all the same.
        """
        return self._exchange("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a change as JSON; raises as `post` does."""
        return self._exchange("PATCH", path, body)

    def delete(self, path: str) -> None:
        """Delete what is there; raises as `post` does."""
        self._exchange("DELETE", path, None)

    def stop(self, task_id: str) -> None:
        """Ask for a task's end. The handler of a signal may call this in the middle of all else.

        Raises:
            Unreachable: nobody took the request.
            Ended: there is nothing to stop any more.
        """
        try:
            self._exchange("POST", f"/api/tasks/{task_id}/stop", None)
        except CliExit as refused:
            raise Ended(str(refused)) from None

    def stream(self, path: str, last_id: str) -> Iterator[StreamFrame]:
        """Yield the frames of an event stream, until it ends.

        Raises:
            Leave: the gateway refuses.
            Unreachable: the connection cannot be made, broke, or fell silent.
        """
        headers = {**self._headers, "Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        parser = StreamParser()
        with closing(self._new(SILENCE_SECONDS)) as connection:
            try:
                connection.request("GET", self._path + path, headers=headers)
                response = connection.getresponse()
                if response.status >= _REFUSED:
                    raise _refusal(response.status, response.read())
                while received := response.read1(65_536):
                    yield from parser.feed(received)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_reason(error)) from None

    def _new(self, seconds: float) -> http.client.HTTPConnection:
        return self._connect(self._host, self._port, timeout=seconds)

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        kind = {} if content is None else {"Content-Type": "application/json"}
        with closing(self._new(ANSWER_SECONDS)) as connection:
            try:
                connection.request(method, self._path + path, content, {**self._headers, **kind})
                response = connection.getresponse()
                received = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_reason(error)) from None
        if response.status >= _REFUSED:
            raise _refusal(response.status, received)
        if response.status == _NO_CONTENT:
            return None
        try:
            return json.loads(received)
        except ValueError:
            raise self.stranger() from None


def _refusal(status: int, body: bytes) -> Exception:
    """Return what a refusal means here: a full house is worth another try, the rest is not."""
    try:
        sentence = str(json.loads(body)["error"]["message"])
    except (ValueError, TypeError, KeyError):
        sentence = f"The gateway answered with status {status}."
    if status == _TOO_MANY:
        return Unreachable(sentence)
    if status in {401, 403}:
        return CliExit(CONFIG, sentence)
    return CliExit(FAILED if status >= _BROKEN else USAGE, sentence)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
