"""An MCP server on standard input and output that passes each request to the running gateway.

Standard library only: MCP clients start it with every session. The gateway keeps no state between
requests, so that notifications of a client, which have no response, have nothing to act on.
"""

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.interface import Unreachable
from internal.channels.cli.transports.sse import StreamParser

PATH = "/mcp"
MAX_MESSAGE_BYTES = 4_194_304
MAX_CALLS = 32
"""Number of requests that wait for the gateway at once; further ones wait in the pipe."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32_700, -32_600, -32_603
_STREAM = "text/event-stream"


class McpBridge:
    """Reads JSON-RPC messages, one per line, and writes the responses as they arrive.

    Args:
        endpoint: returns the endpoint of the gateway, or raises Unreachable.
        source: the output of the client.
        sink: the input of the client.
    """

    def __init__(
        self, endpoint: Callable[[], HttpEndpoint], source: BinaryIO, sink: BinaryIO
    ) -> None:
        self._endpoint = endpoint
        self._source = source
        self._sink = sink
        self._writing = threading.Lock()
        self._free = threading.Semaphore(MAX_CALLS)
        self._version = ""

    def run(self) -> None:
        """Serve until the client closes its end and has all responses."""
        calls: list[threading.Thread] = []
        while line := self._source.readline(MAX_MESSAGE_BYTES + 1):
            if len(line) > MAX_MESSAGE_BYTES:
                self._fail(None, _INVALID_REQUEST, "The message is too long.")
                return
            if line.strip() and (request := self._request(line)) is not None:
                self._free.acquire()
                call = threading.Thread(target=self._serve, args=(request,), daemon=True)
                call.start()
                calls = [one for one in (*calls, call) if one.is_alive()]
        for call in calls:
            call.join()

    def _request(self, line: bytes) -> Mapping[str, Any] | None:
        """Return the request in a line, None if no response is due or it is sent already."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, _PARSE_ERROR, "The message is not valid JSON in UTF-8.")
            return None
        if not isinstance(message, dict) or not isinstance(message.get("params", {}), dict):
            self._fail(None, _INVALID_REQUEST, "The message is not a JSON-RPC request.")
            return None
        return message if "id" in message and "method" in message else None

    def _serve(self, request: Mapping[str, Any]) -> None:
        try:
            for message in self._exchange(request):
                self._write(message)
        except Unreachable as error:
            self._fail(request["id"], _INTERNAL_ERROR, f"The gateway does not answer: {error}.")
        finally:
            self._free.release()

    def _exchange(self, request: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the messages that the gateway sends for a request, the response last.

        Raises:
            Unreachable: it does not answer, or not with such messages.
        """
        body = json.dumps(request).encode()
        with self._endpoint().post(PATH, body, self._headers(request)) as response:
            if response.headers.get_content_type() != _STREAM:
                yield self._message(request, response.read())
                return
            parser = StreamParser()
            while received := response.read1():
                for frame in parser.feed(received):
                    if frame.data:
                        message = self._message(request, frame.data)
                        yield message
                        if "id" in message:
                            return
        raise Unreachable("the connection ended")

    def _headers(self, request: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers that repeat parts of a message (MCP 2026-07-28, Transports)."""
        headers = {"Accept": f"application/json, {_STREAM}"}
        params: Mapping[str, Any] = request.get("params", {})
        meta = params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if version is None:
            return headers | ({"MCP-Protocol-Version": self._version} if self._version else {})
        named = {
            "MCP-Protocol-Version": version,
            "Mcp-Method": request["method"],
            "Mcp-Name": params.get("name", params.get("uri")),
        }
        return headers | {
            name: _header_value(value) for name, value in named.items() if isinstance(value, str)
        }

    def _message(self, request: Mapping[str, Any], body: bytes) -> Any:
        """Return a message of the gateway; an error of its HTTP API becomes one of JSON-RPC.

        Raises:
            Unreachable: it is neither.
        """
        try:
            message = json.loads(body)
            if "jsonrpc" not in message:
                return _error(request["id"], _INTERNAL_ERROR, message["error"]["message"])
            if request["method"] == "initialize" and "result" in message:
                self._version = message["result"]["protocolVersion"]
        except (ValueError, TypeError, KeyError):
            raise Unreachable("it is not a Larkspur gateway with MCP") from None
        return message

    def _fail(self, request_id: Any, code: int, sentence: str) -> None:
        self._write(_error(request_id, code, sentence))

    def _write(self, message: Any) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._writing, suppress(BrokenPipeError):  # the client has gone: its input ends too
            self._sink.write(line)
            self._sink.flush()


def _error(request_id: Any, code: int, sentence: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": sentence}}


def _header_value(text: str) -> str:
    """Return a text as a header carries it: printable ASCII, else Base64 between marks."""
    if text.isascii() and text.isprintable() and text == text.strip() and text[:2] != "=?":
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="
