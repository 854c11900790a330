"""Local Claude endpoints in the forms of Amazon Bedrock, Google Vertex and Microsoft Foundry.

Replies are scripted as for `ScriptedAnthropic`. This module adds the parts that differ by cloud:
paths, signatures and tokens, and the framing of the stream. Sources:

- docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html (signature, version 4) and
  smithy.io/2.0/aws/amazon-eventstream.html (`application/vnd.amazon.eventstream`)
- docs.cloud.google.com: `streamRawPredict`; RFC 7523 for tokens of a service account
- learn.microsoft.com: `api-key`, and the tokens of a managed identity of an App Service
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import re
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.anthropic_server import ScriptedAnthropic, answer_to, check_request
from tests.support.scripted_model import Answer, Refusal, Reply, Script, _Request, encode

ACCESS_KEY, SECRET_KEY, REGION = "AKIALOCALTEST", "secret/of+the+test", "eu-central-1"
PROJECT = "larkspur-test"
TOKEN = "given-by-the-cloud"  # noqa: S105 - given by these servers only
_VERSIONS = {"bedrock-2023-05-31", "vertex-2023-10-16", "2026-10-21"}


class ScriptedCloud(ScriptedAnthropic):
    """A server whose requests name the model in their path. `route` has a group `model`.

    `seen_requests` holds method, path and headers of each accepted request.
    """

    route = re.compile("never")

    def __init__(self, script: Script = (), *, api_key: str | None = None) -> None:
        super().__init__(script, api_key=api_key)
        self.seen_requests: list[tuple[str, str, dict[str, str]]] = []

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        version = body.pop("anthropic_version", None)
        if version not in _VERSIONS:
            raise Refusal(400, f"anthropic_version: {version!r} is not a valid version")
        check_request({"x-api-key": "k", "anthropic-version": "2026-10-21"}, body)

    def authenticate(self, request: _Request) -> None:
        """Raise Refusal unless the request has the credentials of the cloud."""
        raise NotImplementedError

    async def _route(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        found = self.route.fullmatch(request.path)
        if request.method != "POST" or found is None:
            return await super()._route(request, reader, writer)
        try:
            self.authenticate(request)
        except Refusal as refusal:
            writer.write(self._error(refusal.status, str(refusal), refusal.error))
            await writer.drain()
            return True
        self.seen_requests.append((request.method, request.path, request.headers))
        body = msgspec.json.decode(request.body)
        body = {"model": unquote(found["model"]), "stream": True, **body}
        whole = _Request("POST", self.path, request.headers, encode(body))
        return await super()._route(whole, reader, writer)


class ScriptedBedrock(ScriptedCloud):
    """Amazon Bedrock: signatures of version 4, or a key of Bedrock; streams of its own framing."""

    route = re.compile(r"/model/(?P<model>[^/]+)/invoke-with-response-stream")
    delta_mark = base64.b64encode(
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","'
    )[:-8]

    def authenticate(self, request: _Request) -> None:
        given = request.headers.get("authorization", "")
        if self._api_key is not None:
            if given != f"Bearer {self._api_key}":
                raise Refusal(403, "The security token included in the request is invalid.")
            return
        expected = signature(request)
        if not expected or not given.endswith(f"Signature={expected}"):
            raise Refusal(
                403,
                "The request signature we calculated does not match the one you provided.",
            )

    def answer(self, reply: Reply, body: Mapping[str, Any], raw: bytes) -> Answer:
        return _FramedAnswer(answer_to(reply, body, raw))

    def error(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        return {"message": message}

    def error_event(self, kind: str | None, message: str) -> bytes:
        name = kind or "serviceUnavailableException"
        headers = {":message-type": "exception", ":exception-type": name}
        return frame(headers, encode({"message": message}))

    def _stream_head(self) -> bytes:
        head = super()._stream_head()
        return head.replace(
            b"text/event-stream; charset=utf-8", b"application/vnd.amazon.eventstream"
        )


class _FramedAnswer:
    def __init__(self, answer: Answer) -> None:
        self.reply = answer.reply
        self._answer = answer

    def events(self) -> list[bytes]:
        """Return the events, each in a message of the event stream."""
        headers = {":message-type": "event", ":event-type": "chunk"}
        texts = (re.search(rb"data: (.*)\n\n", event) for event in self._answer.events())
        return [
            frame(headers, encode({"bytes": base64.b64encode(text[1]).decode(), "p": "abcdef"}))
            for text in texts
            if text is not None
        ]

    def whole(self) -> bytes:
        """Return the message as one JSON body."""
        return self._answer.whole()


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return a message of an event stream of Amazon."""
    named = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for name, value in {**headers, ":content-type": "application/json"}.items()
    )
    prelude = struct.pack("!II", 16 + len(named) + len(payload), len(named))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + named + payload
    return message + struct.pack("!I", binascii.crc32(message))


def signature(request: _Request) -> str:
    """Return the signature of version 4 that the request must have, "" if it has none."""
    given = re.fullmatch(
        rf"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/"
        r"(?P<scope>\d{8}/[a-z0-9-]+/bedrock/aws4_request),"
        r" SignedHeaders=(?P<names>[\w;-]+), Signature=[0-9a-f]{64}",
        request.headers.get("authorization", ""),
    )
    if given is None:
        return ""
    names = given["names"].split(";")
    path = "/".join(_quoted(part) for part in request.path.split("/"))
    canonical = "\n".join(
        (
            request.method,
            path,
            "",
            *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names),
            "",
            given["names"],
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    when = request.headers["x-amz-date"]
    text = "\n".join(("AWS4-HMAC-SHA256", when, given["scope"], digest))
    key = f"AWS4{SECRET_KEY}".encode()
    for part in given["scope"].split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _quoted(part: str) -> str:
    """Quote a part of a path once more, as services other than S3 demand."""
    return re.sub(
        r"[^A-Za-z0-9_.~-]", lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), part
    )


class ScriptedVertex(ScriptedCloud):
    """Google Vertex, and the endpoint that gives tokens to its service accounts."""

    route = re.compile(
        rf"/v1/projects/{PROJECT}/locations/global/publishers/anthropic/models/"
        r"(?P<model>[^/:]+):streamRawPredict"
    )

    def __init__(self, script: Script = (), *, api_key: str | None = None) -> None:
        super().__init__(script, api_key=api_key)
        self._private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.tokens_given = 0

    @property
    def base_url(self) -> str:
        return super().base_url + "/v1"

    def write_credentials(self, file: Path) -> None:
        """Write the file of a service account of this server."""
        text = self._private.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode()
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "1",
            "private_key": text,
            "client_email": f"larkspur@{PROJECT}.iam.gserviceaccount.com",
            "token_uri": super().base_url + "/token",
        }
        file.write_text(json.dumps(account))

    def authenticate(self, request: _Request) -> None:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "Request had invalid authentication credentials.")

    def error(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": kind or "UNAVAILABLE"}}

    async def _route(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if request.path != "/token":
            return await super()._route(request, reader, writer)
        assertion = dict(pair.split("=", 1) for pair in request.body.decode().split("&"))
        claims = jwt.decode(
            unquote(assertion["assertion"]),
            self._private.public_key(),
            algorithms=["RS256"],
            audience="https://oauth2.googleapis.com/token",  # whatever `token_uri` says
        )
        assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
        self.tokens_given += 1
        given = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        writer.write(self._response(200, encode(given), "application/json"))
        await writer.drain()
        return True


class ScriptedFoundry(ScriptedCloud):
    """Microsoft Foundry, and the endpoint that gives tokens to a managed identity."""

    route = re.compile(r"/anthropic/v1/messages(?P<model>)")
    identity_header = "header-of-the-identity"

    @property
    def base_url(self) -> str:
        return super().base_url + "/anthropic"

    @property
    def identity_endpoint(self) -> str:
        """The address of the tokens of the managed identity."""
        return super().base_url + "/msi/token"

    def authenticate(self, request: _Request) -> None:
        headers = request.headers
        if headers.get("authorization") == f"Bearer {TOKEN}" and "api-key" not in headers:
            return
        if self._api_key is None or headers.get("api-key") != self._api_key:
            raise Refusal(401, "Access denied due to invalid subscription key.")

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        check_request({**headers, "x-api-key": "k"}, body)

    async def _route(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if request.path != "/msi/token":
            return await super()._route(request, reader, writer)
        assert request.headers["x-identity-header"] == self.identity_header
        given = {
            "access_token": TOKEN,
            "expires_on": "4102444800",
            "resource": "https://ai.azure.com",
            "token_type": "Bearer",
        }
        writer.write(self._response(200, encode(given), "application/json"))
        await writer.drain()
        return True


def bedrock_environment() -> dict[str, str]:
    """Return the variables of AWS's tools; nothing of this machine is used."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }


def vertex_environment(server: ScriptedVertex, folder: Path) -> dict[str, str]:
    """Return the variables of Google's tools, after their file is written."""
    server.write_credentials(folder / "account.json")
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "account.json"),
        "CLOUD_ML_REGION": "global",
        "ANTHROPIC_VERTEX_PROJECT_ID": PROJECT,
    }


def foundry_environment(server: ScriptedFoundry) -> dict[str, str]:
    """Return the variables of a managed identity of an App Service."""
    return {
        "IDENTITY_ENDPOINT": server.identity_endpoint,
        "IDENTITY_HEADER": server.identity_header,
    }


def cloud_environment(server: object, folder: Path | None = None) -> dict[str, str]:
    """Return the variables of the tools of a cloud, none for another server."""
    match server:
        case ScriptedBedrock():
            return bedrock_environment()
        case ScriptedVertex():
            return vertex_environment(server, folder or Path(tempfile.mkdtemp()))
        case _:
            return {}
