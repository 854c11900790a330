"""Claude on Amazon Bedrock, Google Vertex and Microsoft Foundry.

Anthropic's SDK finds the credentials of a cloud, renews them and signs the requests. What is sent
and how streams are read is that of the Messages API, `internal.llm.anthropic`. The SDK is imported
in a thread, and only here: see docs/adr/0012-model-requests-without-the-sdk.md.
"""
# ruff: noqa: PLC0415 - the SDKs are imported when a cloud is used, see above

import asyncio
import base64
import binascii
import contextlib
import importlib.metadata
import importlib.util
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from internal.agent.app.background_task import wait_shielded
from internal.agent.domain.errors import (
    ModelError,
    ModelKeyRejected,
    ModelRejected,
    ModelUnreachable,
)
from internal.egress.certificates import system_certificates
from internal.llm.anthropic import AnthropicModel
from internal.llm.errors import ProviderInfo, invalid_key_error
from internal.llm.lenient_json import one_line
from internal.llm.lessons.book import LessonBook
from internal.llm.refusals.errors import error_from_body
from internal.llm.stream_reader import ResponseReader, StreamedText
from internal.llm.transport import ApiKey, ProviderErrorResponse, Refused
from internal.model_providers.dialect import Dialect
from internal.model_providers.provider import CloudName

if TYPE_CHECKING:
    from anthropic import AsyncAPIResponse
    from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped] # it has none

_CONNECT_SECONDS = 10.0
_TAIL_SECONDS = 1.0
_AZURE_SCOPE = "https://ai.azure.com/.default"


class _Cloud(NamedTuple):
    """Requirements of a cloud. The tools of the cloud read the same variables.

    `module` is one of its `extra`. `region` and `account` are what to set where they are missing.
    `dated_version` is the version of the API for models whose name has a date, which take no other.
    """

    module: str
    region: str
    account: str
    credentials: str
    dated_version: str = ""


_CLOUDS: Mapping[CloudName, _Cloud] = {
    "bedrock": _Cloud(
        "boto3",
        "a region: set AWS_REGION",
        "",
        "credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a key of"
        " Bedrock in AWS_BEARER_TOKEN_BEDROCK",
        "bedrock-2023-05-31",
    ),
    "vertex": _Cloud(
        "google.auth",
        "a region: set CLOUD_ML_REGION, such as global",
        "a project: set ANTHROPIC_VERTEX_PROJECT_ID",
        "credentials: run gcloud auth application-default login, or set"
        " GOOGLE_APPLICATION_CREDENTIALS",
        "vertex-2023-10-16",
    ),
    "foundry": _Cloud(
        "azure.identity",
        "",
        "a resource: set ANTHROPIC_FOUNDRY_RESOURCE or llm.base_url",
        "a key in ANTHROPIC_FOUNDRY_API_KEY, or credentials of Azure: run az login",
    ),
}
# `-v1:0` of Amazon Bedrock and `@20250929` of Google Vertex
_DATED = re.compile(r"-v\d+(:\d+)?$|@\d{8}$|-\d{8}$")
_CREDENTIAL_MODULES = ("botocore.", "google.auth.", "azure.", "msal.")
# what these packages raise when the server of the credentials is not reached
_UNREACHED = re.compile(r"Transport|Endpoint|Connect|Timeout|ServiceRe|HTTPClient")
# the errors that Amazon Bedrock sends inside of a stream, with the status that they stand for:
# docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html
_STATUS_OF = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
    "modeltimeoutexception": 504,
    "serviceunavailableexception": 503,
}


class CloudResponse(NamedTuple):
    """A streaming response of a cloud."""

    headers: Mapping[str, str]
    response: "AsyncAPIResponse[Any]"


class CloudTransport:
    """Sends Messages requests through the SDK's client of a cloud and reads the raw responses.

    It takes the place of `ProviderHttpClient`. Creating one is instant; a thread imports the SDK.
    """

    def __init__(
        self,
        cloud: CloudName,
        peer: ProviderInfo,
        key: ApiKey,
        *,
        base_url: str | None,
        silence_seconds: float,
    ) -> None:
        self._cloud: CloudName = cloud
        self._peer, self._key, self._base_url = peer, key, base_url
        self._silence = silence_seconds
        self._client: Future[Any] | None = None
        self._azure: Any = None  # the credentials of Azure

    def check_key(self, *, needed: bool) -> None:
        """Raise `ModelKeyRejected` if the extra is missing or the key is malformed.

        Whether the cloud has credentials is known at the first call: they may come over the
        network. `needed` has no effect: a key is one of several credentials.
        """
        del needed
        if self._key and not self._key.usable:
            raise invalid_key_error(self._peer)
        is_needed = self._cloud != "foundry" or not self._key
        if is_needed and not _is_installed(_CLOUDS[self._cloud].module):
            raise ModelKeyRejected(missing_extra(self._peer.name, self._cloud))

    def preload(self) -> None:
        """Start importing the SDK in the background; the first call waits for it."""
        self._loading()

    async def post(self, path: str, body: bytes, refused: Refused) -> CloudResponse:
        """Send a request and return the response, whose body is not read yet.

        Raises:
            ModelError: the error that `refused` makes of a status other than 2xx.
            ModelKeyRejected: the cloud finds no credentials, no region or no project.
            ModelUnreachable: the connection failed.
        """
        del path  # the SDK knows that of each cloud
        loading = self._loading()
        if not loading.done():
            await wait_shielded(asyncio.wrap_future(loading))
        client = loading.result()
        import anthropic

        try:
            # closed by `read`: the response outlives this call
            manager = client.messages.with_streaming_response.create(**self._arguments(body))
            response = await manager.__aenter__()
        except anthropic.APIStatusError as error:
            raise refused(_refusal(error)) from error
        except anthropic.APITimeoutError as error:
            raise self._silent() from error
        except anthropic.APIConnectionError as error:
            raise self._unreachable(error.__cause__ or error) from error
        except Exception as error:
            raise self._without_credentials(error) from error
        return CloudResponse(response.headers, response)

    def _arguments(self, body: bytes) -> dict[str, Any]:
        """Return the arguments of the SDK's method. Unchecked ones are its `extra_body`."""
        fields = msgspec.json.decode(body)
        needed = {name: fields.pop(name) for name in ("model", "max_tokens", "messages", "stream")}
        version = _CLOUDS[self._cloud].dated_version
        if version and _DATED.search(needed["model"]):
            fields["anthropic_version"] = version
        return {**needed, "extra_body": fields}

    async def read(
        self, response: CloudResponse, reader: ResponseReader
    ) -> AsyncGenerator[StreamedText, None]:
        """Feed the response to the reader and yield its text deltas. Closes the response.

        Raises:
            ModelUnreachable: the connection broke before the response was complete.
            ModelError: the cloud reported an error inside of the stream.
        """
        import httpx2

        try:
            async with contextlib.aclosing(self._chunks(response)) as chunks:
                async for chunk in chunks:
                    for words in reader.feed(chunk):
                        yield words
                    if reader.is_complete or reader.is_finished:
                        break
                with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
                    # the end of the body, so that the connection can be used again
                    async with asyncio.timeout(_TAIL_SECONDS):
                        async for chunk in chunks:
                            reader.feed(chunk)
            for words in reader.end():
                yield words
        except httpx2.TimeoutException as error:
            raise self._silent() from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise self._unreachable(error) from error
        finally:
            await response.response.close()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        if self._client is not None:
            with contextlib.suppress(ModelError):  # it could not be made
                client = await asyncio.wrap_future(self._client)
                await client.close()
        if self._azure is not None:
            await self._azure.close()

    async def _chunks(self, response: CloudResponse) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events, whatever the cloud puts around them."""
        raw = response.response.iter_bytes()
        if "vnd.amazon.eventstream" not in response.headers.get("content-type", ""):
            async for chunk in raw:
                yield chunk
            return
        async for chunk in self._decoded(raw):
            yield chunk

    async def _decoded(self, raw: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the events of an event stream of Amazon.

        Raises:
            ModelUnreachable: a message is damaged.
            ModelError: a message is an exception.
        """
        from botocore.eventstream import EventStreamBuffer, ParserError

        buffer = EventStreamBuffer()
        async for chunk in raw:
            buffer.add_data(chunk)
            try:
                events = list(self._events(buffer))
            except (ParserError, ValueError, KeyError, binascii.Error) as error:
                sentence = f"{self._peer.name} sent a damaged event stream."
                raise ModelUnreachable(sentence, detail=repr(error)) from error
            for event in events:
                yield event

    def _events(self, buffer: "EventStreamBuffer") -> Iterator[bytes]:
        for message in buffer:
            kind = message.headers.get(":message-type", "event")
            if kind == "event":
                payload = msgspec.json.decode(message.payload)
                yield b"data: %s\n\n" % base64.b64decode(payload["bytes"])
                continue
            name = message.headers.get(":exception-type") or message.headers.get(":error-code", "")
            said = _message(_json(message.payload)) or message.headers.get(":error-message", "")
            status = _STATUS_OF.get(str(name).lower(), 500)
            body = {"code": str(name), "message": str(said or name)}
            raise error_from_body(self._peer, status, body)

    def _loading(self) -> "Future[Any]":
        if self._client is None:
            self._client = Future()
            # no daemon thread: a process that exits while OpenSSL reads certificates may crash
            threading.Thread(target=self._load, args=(self._client,)).start()
        return self._client

    def _load(self, client: "Future[Any]") -> None:
        try:
            client.set_result(self._connect())
        except Exception as error:  # noqa: BLE001  # any failure must reach the waiting run
            refused = self._without_credentials(error)
            refused.__cause__ = error
            client.set_exception(refused)

    def _connect(self) -> Any:
        """Return the SDK's client. It reads region, project and resource from the environment."""
        import anthropic

        timeout = anthropic.Timeout(self._silence, connect=_CONNECT_SECONDS)
        common: dict[str, Any] = {
            "base_url": self._base_url,
            "timeout": timeout,
            "max_retries": 0,  # internal/llm/retry.py is the only retry layer
            "open_telemetry": False,
            "http_client": anthropic.DefaultAsyncHttpxClient(
                timeout=timeout, verify=system_certificates(), follow_redirects=False
            ),
        }
        key = self._key.reveal() or None
        if self._cloud == "bedrock":
            return anthropic.AsyncAnthropicBedrock(api_key=key, **common)
        if self._cloud == "vertex":
            return anthropic.AsyncAnthropicVertex(**common)
        if self._base_url is None:
            del common["base_url"]
        if key is not None:
            return anthropic.AsyncAnthropicFoundry(api_key=key, **common)
        from azure.identity.aio import DefaultAzureCredential, get_bearer_token_provider

        self._azure = DefaultAzureCredential()
        tokens = get_bearer_token_provider(self._azure, _AZURE_SCOPE)
        return anthropic.AsyncAnthropicFoundry(azure_ad_token_provider=tokens, **common)

    def _without_credentials(self, error: Exception) -> ModelError:
        """Return the sentence for an error that came before anything was sent."""
        needs, reason = _CLOUDS[self._cloud], one_line(str(error))
        if _is_of_credentials(error) and _UNREACHED.search(type(error).__name__):
            sentence = f"Cannot reach the server that gives credentials for {self._peer.name}."
            return ModelUnreachable(sentence, detail=reason)
        lacks = ""
        if isinstance(error, (ValueError, RuntimeError)) and not _is_of_credentials(error):
            if "region" in reason and "project" not in reason:
                lacks = needs.region
            elif re.search("project|resource|base_url", reason):
                lacks = needs.account
            elif "credentials" in reason or "token" in reason:
                lacks = needs.credentials
        elif _is_of_credentials(error):
            lacks = needs.credentials
        elif isinstance(error, ImportError):
            return ModelKeyRejected(missing_extra(self._peer.name, self._cloud), detail=reason)
        if lacks:
            return ModelKeyRejected(f"{self._peer.name} needs {lacks}.", detail=reason)
        sentence = f"Cannot use {self._peer.name}: {reason or type(error).__name__}"
        return ModelRejected(sentence, detail=reason)

    def _silent(self) -> ModelUnreachable:
        return ModelUnreachable(f"{self._peer.name} sent nothing for {self._silence:g} s.")

    def _unreachable(self, error: BaseException) -> ModelUnreachable:
        reason = one_line(str(error)) or type(error).__name__
        return ModelUnreachable(f"Cannot connect to {self._peer.name}.", detail=reason)


def connect_cloud(
    cloud: CloudName,
    peer: ProviderInfo,
    key: ApiKey,
    *,
    base_url: str | None,
    silence_seconds: float,
    dialect_of: Callable[[str], Dialect],
    lessons: LessonBook | None = None,
) -> AnthropicModel:
    """Return the client of Claude on a cloud. Instant."""
    http = CloudTransport(cloud, peer, key, base_url=base_url, silence_seconds=silence_seconds)
    return AnthropicModel(
        key,
        base_url=base_url,
        dialect_of=dialect_of,
        provider=cloud,
        peer=peer,
        http=http,
        lessons=lessons,
    )


def missing_extra(title: str, extra: str) -> str:
    """Return the installation advice for a cloud."""
    version = importlib.metadata.version("larkspur-gateway")
    wheel = f"./larkspur_gateway-{version}-py3-none-any.whl[{extra}]"
    return f"{title} needs packages that are not installed: pip install '{wheel}'"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # the package around it
        return False


def _is_of_credentials(error: Exception) -> bool:
    return f"{type(error).__module__}.".startswith(_CREDENTIAL_MODULES)


def _refusal(error: Any) -> ProviderErrorResponse:
    """Return an error response in the form in which the Messages API sends it."""
    body = error.body if error.body is not None else error.response.text
    said = _message(body)
    form = {"error": {"message": said}} if said else body
    return ProviderErrorResponse(error.status_code, form, error.response.headers)


def _message(body: object) -> str:
    """Return the message of an error: `{error: {message}}`, Amazon's `{message}` or `{Message}`."""
    match body:
        case [first, *_]:  # Google answers some errors of streams with a list
            return _message(first)
        case {"error": {"message": str(message)}}:
            return message
        case {"message": str(message)} | {"Message": str(message)}:
            return message
        case _:
            return ""


def _json(payload: bytes) -> object:
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return None
