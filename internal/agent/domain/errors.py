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
│   └── Conflict            the current state does not allow it
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
│       └── ModelWithoutCredit  the account at the provider has none
├── ToolError               a tool call failed; the model reads the message
├── DocumentUnreadable      a file cannot be read as a document or picture
└── RunExit                 a run ends before its Turn is done
    ├── RunStopped          it was stopped: `result.cancelled`
    ├── RunHandedOver       this process shuts down: another one continues
    └── LeaseLost           another process runs it: nothing more may be written
"""

from typing import ClassVar

from internal.agent.domain.secrets import mask_secrets


class LarkspurError(Exception):
    """Base class. `str(error)` is a sentence for a person, with every secret masked."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(mask_secrets(sentence))


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


class Conflict(RequestError):
    """The current state does not allow it."""


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


class ModelError(LarkspurError):
    """The model call failed. `code` is the `error_code` of `workflow.result.final`.

    `detail` is for the log: the words of the provider, with addresses and request ids.
    """

    code: ClassVar[str] = "model_error"

    def __init__(self, sentence: str, *, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail or sentence

    @property
    def detail(self) -> str:
        """What the log says, with every secret masked."""
        return self._detail

    @detail.setter
    def detail(self, text: str) -> None:
        self._detail = mask_secrets(text)


class ModelKeyRejected(ModelError):
    """The key is missing or wrong. Retrying does not help."""

    code: ClassVar[str] = "model_key_refused"


class ModelUnavailable(ModelError):
    """The model could not be reached or stayed overloaded; the run can be resumed.

    `retry_after` is the wait in seconds that the provider requests, None if it does not say.
    """

    code: ClassVar[str] = "model_unavailable"

    def __init__(
        self, sentence: str, retry_after: float | None = None, *, detail: str = ""
    ) -> None:
        super().__init__(sentence, detail=detail)
        self.retry_after = retry_after


class ModelOverloaded(ModelUnavailable):
    """The provider is rate limiting or overloaded."""

    code: ClassVar[str] = "model_busy"


class ModelUnreachable(ModelUnavailable):
    """The connection failed or broke, or the response violates the protocol."""

    code: ClassVar[str] = "model_unreachable"


class ContextTooLong(ModelError):
    """The request exceeds the context window of the model."""

    code: ClassVar[str] = "context_too_long"


class ModelRejected(ModelError):
    """The provider rejects this request; retrying does not help."""

    code: ClassVar[str] = "model_rejected"


class ModelWithoutCredit(ModelRejected):
    """The account at the provider has no credit left."""

    code: ClassVar[str] = "model_no_credit"


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
