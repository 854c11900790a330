"""Idempotency: the first result of a request that is sent again with the same key."""

from typing import Literal, NamedTuple, TypeVar

import msgspec

from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Read, Write
from internal.agent.store.encoding import to_json
from internal.agent.store.stores import Stores

T = TypeVar("T")


class RequestKey(NamedTuple):
    """Identifies a request. `key` is chosen by the client; None if the request is not repeated.

    `target` is the session, task or question that the request is about.
    """

    principal: str
    command: Literal["steer", "stop", "answer"]
    key: str | None
    target: str = ""

    @property
    def stored(self) -> str:
        """The key as it is stored: apart from the same key for another target."""
        return f"{self.target} {self.key}" if self.target else self.key or ""


class RepeatableRequest(NamedTuple):
    """A request without an idempotency key, which is recognised by its content.

    Attributes:
        fingerprint: the same for all requests of a principal with the same content.
        is_repeat: the client says that it sends the request again.
        has_reader: another client waits for the answer to the same request.
        joins_stopped: also a stopped run is the answer to it.
    """

    fingerprint: str
    is_repeat: bool = False
    has_reader: bool = False
    joins_stopped: bool = False


def scoped_key(endpoint: str, key: str | None) -> str | None:
    """Return the idempotency key of a task that an endpoint creates: each has keys of its own."""
    return None if key is None else f"{endpoint} {key}"


def find_result(stores: Stores, request: RequestKey, kind: type[T]) -> Read[T | None]:
    """Return the result of an earlier request with the same key, whatever its content was."""
    if request.key is None:
        return None
    stored = yield from stores.results.get(request.principal, request.command, request.stored)
    return None if stored is None else msgspec.json.decode(stored, type=kind)


def save_result(
    stores: Stores, request: RequestKey, result: object, session_id: SessionId, *, now: str
) -> Write[None]:
    """Store the result of the first request with this key; it is deleted with the session."""
    if request.key is not None:
        key = (request.principal, request.command, request.stored)
        yield from stores.results.add(*key, session_id=session_id, result=to_json(result), now=now)
