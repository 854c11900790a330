"""The error tree. The text of each error is a sentence for a person.

LarkspurError
├── RequestError            the request is not acceptable; nothing was done
│   ├── InvalidRequest      a field is missing, not valid or too large
│   │   ├── ProfileUnusable     the profile does not exist, or its file has an error
│   │   ├── FileTooLarge        a file, or the files of a session, exceed their limit
│   │   └── WrongHash           received bytes do not have the hash that was announced
│   ├── NotFound            it does not exist, or belongs to another person
│   ├── Forbidden           the principal lacks the right
│   │   └── MessageRefused      a hook of the operator refused the message
│   ├── TooManyTasks        as many tasks of the person wait as may
│   └── Conflict            the current state does not allow it
│       └── WrittenEarlier      the text is older than what it would act on
├── StoreError              the database cannot be used
│   ├── StoreUnavailable    full, read-only, locked or missing: nothing was written
│   └── StoreCorrupt        damaged, foreign or newer than this program: nothing was changed
├── SandboxUnavailable      the chosen sandbox does not isolate: nothing is started
├── FilesUnavailable        the service that stores files does not answer: nothing was stored
├── ModelError              the model call failed
│   ├── ModelKeyRejected    the key is missing or wrong (exit code 3)
│   ├── ModelUnavailable    temporary: it may be retried, and the run can be resumed later
│   │   ├── ModelOverloaded     rate limited or overloaded
│   │   └── ModelUnreachable    the connection failed or broke
│   ├── ContextTooLong      the request exceeds the context window
│   └── ModelRejected       the provider rejects this request
│       ├── ModelWithoutCredit  the account at the provider has none
│       └── ModelAddressWrong   something else than a model server answers
├── ToolError               a tool call failed; the model reads the message
├── DocumentUnreadable      a file cannot be read as a document or picture
└── RunExit                 a run ends before its Turn is done
    ├── RunStopped          it was stopped: `result.cancelled`
    ├── RunHandedOver       this process shuts down: another one continues
    └── LeaseLost           another process runs it: nothing more may be written
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from internal.agent.domain.secrets import mask_secrets


class LarkspurError(Exception):
    """Base class. `str(error)` is a sentence for a person, with every secret masked.

    `reason_code` identifies the sentence, "" if it is only this one, and `params` are its variable
    parts: a channel in another language has a text of its own for each code.
    """

    def __init__(self, sentence: str = "", *, reason_code: str = "", **params: str | int) -> None:
        super().__init__(mask_secrets(sentence))
        self.reason_code = reason_code
        self.params: Mapping[str, str | int] = {
            name: mask_secrets(value) if isinstance(value, str) else value
            for name, value in params.items()
        }


class RequestError(LarkspurError):
    """The request is not acceptable; nothing was done."""


class InvalidRequest(RequestError):
    """A field is missing, not valid or too large; the message names it."""


class ProfileUnusable(InvalidRequest):
    """The profile does not exist, or its file has an error."""


class FileTooLarge(InvalidRequest):
    """A file is larger than allowed, or the files of a session or upload are together."""


class WrongHash(InvalidRequest):
    """The received bytes do not have the hash that was announced. Nothing was stored."""


class NotFound(RequestError):
    """It does not exist or belongs to another person: the two are not distinguished."""


class Forbidden(RequestError):
    """The principal lacks the right."""


class MessageRefused(Forbidden):
    """A hook of the operator refused the message. The sentence is for the person who sent it."""


class TooManyTasks(RequestError):
    """The person has as many tasks that wait to be started as may, which is the `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Not accepted: {limit} of your tasks wait to be started, and no more may. Send this"
            " again when some of them have started, or stop one.",
            reason_code="too_many_tasks",
            limit=limit,
        )
        self.limit = limit


class Conflict(RequestError):
    """The current state does not allow it."""


class WrittenEarlier(Conflict):
    """The text was written before the question was shown or the run began. Nothing was done."""


class StoreError(LarkspurError):
    """The database cannot be used."""


class StoreUnavailable(StoreError):
    """The disk is full, read-only, locked or missing. Nothing was written."""


class StoreCorrupt(StoreError):
    """The database is damaged, foreign or newer than this program. Nothing was changed."""


class SandboxUnavailable(LarkspurError):
    """The chosen sandbox is missing or does not isolate. Nothing is started."""


class FilesUnavailable(LarkspurError):
    """The service that stores files does not answer or refuses. Nothing was stored.

    The database can be used, so runs continue without the file.
    """


RefusalKind = Literal[
    # a part of the request that the server cannot take
    "picture",
    "document",
    "audio",
    "tools",  # it has no tools at all
    "tool_schema",
    "tool_name",
    "tool_count",
    "field",
    "role_order",
    "empty_content",
    "call_id",
    "reasoning",  # earlier reasoning or its signature: it is missing, stale or of another model
    "too_long",
    "body_size",  # of a proxy on the way
    "output_limit",
    # a part that it will not take
    "content_filter",
    # none of our doing
    "key",
    "region",
    "no_model",
    "no_credit",
    "quota",
    "rate",
    "overloaded",
    "loading",
    "unavailable",
    "unknown",
]


class Refusal(NamedTuple):
    """A refusal of a server, as far as its answer is understood.

    `name` is the name of the tool, field or call. For a content filter it is the role of the
    refused message ("user" is the newest, "history" one before it, "assistant" the reply) or a part
    of its text. `number` counts tools or messages from 0, as the server does. `limit` is the
    largest number, size or length that the server accepts. `change` describes the change that a
    request needs, in the terms of `internal/model_providers/dialect.py`.
    """

    kind: RefusalKind
    name: str = ""
    number: int | None = None
    limit: int | None = None
    change: Mapping[str, Any] = {}


CODES: Mapping[RefusalKind, str] = {
    "picture": "model_picture_refused",
    "document": "model_document_refused",
    "audio": "model_audio_refused",
    "tools": "model_without_tools",
    "tool_schema": "model_tool_refused",
    "tool_name": "model_tool_refused",
    "tool_count": "model_tool_refused",
    "body_size": "request_too_large",
    "content_filter": "model_message_filtered",
    "region": "model_region_refused",
    "no_model": "model_not_found",
    "quota": "model_quota_used_up",
    "rate": "model_rate_limited",
    "loading": "model_loading",
    "unavailable": "model_unavailable",
}
"""The codes of refusals that have a sentence of their own."""

MESSAGE_FILTERED_CODE = "model_message_filtered"
"""The `error_code` of a run whose messages a content filter of the provider refused."""


class ModelError(LarkspurError):
    """The model call failed. `code` is the `error_code` of `workflow.result.final`.

    The code comes from the refusal, if that has one, else from the class. `detail` is for the log:
    the provider's message, with addresses and request ids.
    """

    default_code: ClassVar[str] = "model_error"

    def __init__(self, sentence: str, *, detail: str = "", refusal: Refusal | None = None) -> None:
        super().__init__(sentence)
        self.detail = detail or sentence
        self.refusal = refusal

    @property
    def code(self) -> str:
        """The kind of error, for programs."""
        known = None if self.refusal is None else CODES.get(self.refusal.kind)
        return known or self.default_code

    @property
    def detail(self) -> str:
        """The detail for the log, with every secret masked."""
        return self._detail

    @detail.setter
    def detail(self, text: str) -> None:
        self._detail = mask_secrets(text)

    @property
    def is_filtered(self) -> bool:
        """Whether a content filter of the provider refused a message."""
        return self.refusal is not None and self.refusal.kind == "content_filter"


class ModelKeyRejected(ModelError):
    """The key is missing or wrong. Retrying does not help."""

    default_code: ClassVar[str] = "model_key_refused"


class ModelUnavailable(ModelError):
    """The model could not be reached or stayed overloaded; the run can be resumed.

    `retry_after` is the wait in seconds that the provider requests, None if it is unknown.
    """

    default_code: ClassVar[str] = "model_unavailable"

    def __init__(
        self,
        sentence: str,
        retry_after: float | None = None,
        *,
        detail: str = "",
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(sentence, detail=detail, refusal=refusal)
        self.retry_after = retry_after


class ModelOverloaded(ModelUnavailable):
    """The provider is rate limiting or overloaded."""

    default_code: ClassVar[str] = "model_busy"


class ModelUnreachable(ModelUnavailable):
    """The connection failed or broke, or the response violates the protocol."""

    default_code: ClassVar[str] = "model_unreachable"


class ContextTooLong(ModelError):
    """The request exceeds the context window of the model."""

    default_code: ClassVar[str] = "context_too_long"


class ModelRejected(ModelError):
    """The provider rejects this request; retrying does not help."""

    default_code: ClassVar[str] = "model_rejected"


class ModelWithoutCredit(ModelRejected):
    """The account at the provider has no credit left."""

    default_code: ClassVar[str] = "model_no_credit"


class ModelAddressWrong(ModelRejected):
    """Something else than a model server answers at the configured address."""

    default_code: ClassVar[str] = "model_wrong_address"


class ToolError(LarkspurError):
    """A tool call failed. The model reads the message as the result of the call."""


class RemoteFileUnavailable(LarkspurError):
    """A chat service does not return a file of a message. `is_temporary`: it may do so later."""

    def __init__(self, sentence: str, *, is_temporary: bool = False) -> None:
        super().__init__(sentence)
        self.is_temporary = is_temporary


class DocumentUnreadable(LarkspurError):
    """A file is encrypted, damaged, too large or of no known kind. Nothing of it was read."""


class AudioNotTranscribed(LarkspurError):
    """A recording has no transcript. `is_outage`: other recordings will have none either now."""

    def __init__(self, sentence: str, *, is_outage: bool = False) -> None:
        super().__init__(sentence)
        self.is_outage = is_outage


class RunExit(LarkspurError):
    """A run ends before its Turn is done. The type is the reason."""


class RunStopped(RunExit):
    """The run was stopped by the principal `by`, called `name`, through the channel `via`."""

    def __init__(self, by: str, via: str, reason: str = "", name: str = "") -> None:
        super().__init__(reason or f"stopped by {by} via {via}")
        self.by = by
        self.name = name
        self.via = via
        self.reason = reason or "stopped"


class RunHandedOver(RunExit):
    """This process shuts down, or another host has the files of the run.

    The run is queued again from its last checkpoint.
    """


class LeaseLost(RunExit):
    """Another process runs this run. Nothing more may be written or sent."""
