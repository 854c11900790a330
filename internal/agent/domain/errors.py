"""The error tree. Each error's text is the sentence that a person should read.

LarkspurError
├── Refused                 the request is not acceptable; nothing was done
│   ├── Malformed           a field is missing, wrong or too big
│   ├── NotFound            no such thing, or it belongs to somebody else
│   ├── Forbidden           the principal may not do this
│   └── Conflict            the state does not allow it (any more)
├── StoreError              the database cannot do its work
│   ├── StoreUnavailable    full, read-only, locked or gone: nothing was written
│   └── StoreRefused        damaged, foreign or newer than this program: nothing was touched
├── ModelError              the model cannot be used as asked
│   ├── ModelKeyRefused     the key is missing or wrong (exit code 3)
│   ├── ModelBusy           rate limited or overloaded; worth another try
│   ├── ModelUnreachable    connection failed or broke; worth another try
│   ├── ContextTooLong      the provider says that the request does not fit
│   └── ModelRejected       the provider will not take this request, whatever we do
├── ToolError               a tool could not do what was asked; the model reads why
└── WayOut                  a run ends before its Turn is done; the reason travels as a type
    ├── Stopped             somebody stopped it: `result.cancelled`
    ├── HandedOver          this process shuts down: another one goes on
    └── Fenced              another process runs it now: nothing more may be written
"""

from typing import ClassVar


class LarkspurError(Exception):
    """The root. `str(error)` is a sentence for a person."""


class RequestError(LarkspurError):
    """The request is not acceptable; nothing was done."""


class InvalidRequest(RequestError):
    """A field is missing, wrong or too big; the sentence names it."""


class NotFound(RequestError):
    """No such thing, or it belongs to somebody else: both are answered alike."""


class Forbidden(RequestError):
    """The principal may not do this."""


class Conflict(RequestError):
    """The state of the thing does not allow it (any more)."""


class StoreError(LarkspurError):
    """The database cannot do its work."""


class StoreUnavailable(StoreError):
    """The disk is full, read-only, locked or gone. Nothing was written."""


class StoreCorrupt(StoreError):
    """The database is damaged, foreign or newer than this program. Nothing was touched."""


class ModelError(LarkspurError):
    """The model cannot be used as asked. `code` names the case in `workflow.result.final`."""

    code: ClassVar[str] = "model_error"


class ModelKeyRejected(ModelError):
    """The key is missing or wrong. Another try will not help."""

    code: ClassVar[str] = "model_key_refused"


class ModelOverloaded(ModelError):
    """The provider is rate limiting or overloaded.

    `retry_after` is the wait that it asks for in seconds, None when it does not say.
    """

    code: ClassVar[str] = "model_busy"

    def __init__(self, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class ModelUnreachable(ModelError):
    """The connection failed, broke in mid-reply, or what came was not the protocol."""

    code: ClassVar[str] = "model_unreachable"


class ContextTooLong(ModelError):
    """The provider says that the request does not fit into its context window."""

    code: ClassVar[str] = "context_too_long"


class ModelRejected(ModelError):
    """The provider will not take this request, whatever we do."""

    code: ClassVar[str] = "model_rejected"


class ToolError(LarkspurError):
    """A tool could not do what was asked. The model reads the sentence as the call's result."""


class RunExit(LarkspurError):
    """A run ends before its Turn is done. Never a bare cancellation: the reason is a type."""


class RunStopped(RunExit):
    """Somebody stopped the run. Who, what people call them, and through which channel."""

    def __init__(self, by: str, via: str, reason: str = "", name: str = "") -> None:
        super().__init__(reason or f"stopped by {by} via {via}")
        self.by = by
        self.name = name
        self.via = via
        self.reason = reason or "stopped"


class RunHandedOver(RunExit):
    """This process shuts down. The run is queued again, as its last checkpoint left it."""


class LeaseLost(RunExit):
    """Another process runs this run now. Nothing more may be written or sent."""
