"""Sends a request in the dialect that a server takes, and learns the dialect from refusals."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from internal.agent.domain.errors import ModelError, ModelUnavailable
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.lessons import MAX_WORDS, Lesson, LessonKey
from internal.agent.domain.messages import images_in
from internal.agent.ports.llm import ModelRequest
from internal.llm.lenient_json import one_line
from internal.llm.lessons.book import LessonBook, ModelServer
from internal.llm.lessons.changes import (
    SEARCH_KIND,
    Change,
    apply_fields,
    apply_lessons,
    find_change,
    find_search,
)
from internal.llm.lessons.prepared_request import (
    PreparedRequest,
    prepare_request,
    without_oldest_images,
)
from internal.llm.lessons.tool_search import ToolSearch
from internal.model_providers.dialect import Dialect

if TYPE_CHECKING:
    from aiohttp import ClientResponse

MAX_CHANGES = 12
"""Refusals of one request that are followed by another one. Each changes something new."""

_VERSION_HEADERS = ("openai-version", "x-server-version", "x-api-version", "x-version")

logger = logging.getLogger(__name__)


class SentRequest(NamedTuple):
    """A request that the server took, its response, and the parts that were left out."""

    response: "ClientResponse"
    prepared: PreparedRequest
    notes: tuple[RequestLoss, ...]


Encode = Callable[[ModelRequest, Dialect], bytes]
Post = Callable[[bytes], Awaitable["ClientResponse"]]


class Negotiator:
    """Sends the requests of one client.

    Args:
        server: where the requests go.
        dialect_of: returns what is known of a model of the server.
        book: the lessons of all servers.
        encode: returns the body of a request in a dialect.
        post: sends a body, and raises the error that an error response stands for.
    """

    def __init__(
        self,
        server: ModelServer,
        dialect_of: Callable[[str], Dialect],
        book: LessonBook,
        *,
        encode: Encode,
        post: Post,
    ) -> None:
        self._server = server
        self._dialect_of = dialect_of
        self._book = book
        self._encode = encode
        self._post = post
        self._known: dict[str, tuple[int, Dialect, ToolSearch | None]] = {}
        self._interrupted: dict[str, _Attempt] = {}
        """Changed requests that met an outage, by model: the next one goes on from there."""

    async def send(self, request: ModelRequest) -> SentRequest:
        """Send the request; if the server refuses a part, change it and send it again.

        The changes are kept once the server has taken the request.

        Raises:
            ModelError: the server refuses the request for another reason.
        """
        await self._book.refresh()
        attempt = self._begin(request)
        for _ in range(MAX_CHANGES):
            try:
                return await self._finish(attempt, await self._post(attempt.encode(self._encode)))
            except ModelError as error:
                if not await self._adapt(attempt, error):
                    if isinstance(error, ModelUnavailable) and not attempt.is_first:
                        self._interrupted[request.model] = attempt
                    raise
        return await self._finish(attempt, await self._post(attempt.encode(self._encode)))

    def _begin(self, request: ModelRequest) -> "_Attempt":
        known = self._known.get(request.model)
        if known is None or known[0] != self._book.revision:
            lessons = self._book.list_of(self._server, request.model)
            dialect = apply_lessons(self._dialect_of(request.model), lessons)
            known = self._book.revision, dialect, find_search(lessons)
            self._known[request.model] = known
        attempt = _Attempt(request, known[1], known[2])
        if (earlier := self._interrupted.pop(request.model, None)) is not None:
            attempt.continue_from(earlier)
        return attempt

    async def _adapt(self, attempt: "_Attempt", error: ModelError) -> bool:
        """Change the attempt as a refusal asks for; return whether that is a change."""
        refusal = error.refusal
        if refusal is None:
            return False
        if attempt.is_first and await self._book.reread():
            # another process has learned it: its lessons may help without a new one
            again = self._begin(attempt.request)
            if (again.dialect, again.search) != (attempt.dialect, attempt.search):
                attempt.restart(again.dialect, again.search)
                return True
        change = find_change(
            refusal, attempt.dialect, attempt.prepared, size=attempt.size, words=error.detail
        )
        if change is None or not attempt.apply(change, error):
            return False
        fields = {"model": attempt.request.model, "refusal": error.detail}
        logger.info("request refused, sent again without a part", extra=fields)
        return True

    async def _finish(self, attempt: "_Attempt", response: "ClientResponse") -> SentRequest:
        version = stated_version(response.headers)
        await self._book.observe_version(self._server, version)
        if lessons := attempt.lessons(self._server, version):
            await self._book.learn(*lessons)
        return SentRequest(response, attempt.prepared, tuple(attempt.notes()))


class _Attempt:
    """A request while it is negotiated."""

    def __init__(self, request: ModelRequest, dialect: Dialect, search: ToolSearch | None) -> None:
        self.request = request
        self.size = 0
        self.is_first = True
        self.restart(dialect, search)

    def restart(self, dialect: Dialect, search: ToolSearch | None) -> None:
        """Begin again in another dialect."""
        self.dialect = dialect
        self.search = search
        self._tried = {dialect}
        self._learned: list[tuple[Change, str]] = []
        self._found: list[RequestLoss] = []
        self._prepare()

    def continue_from(self, earlier: "_Attempt") -> None:
        """Take over the changes by an earlier request."""
        self.dialect, self.search = earlier.dialect, earlier.search
        self._tried, self._learned = earlier._tried, earlier._learned  # noqa: SLF001 - of this class
        self._found = earlier._found  # noqa: SLF001 - as above
        self.is_first = False
        self._prepare()

    def _prepare(self) -> None:
        offered = {tool.name for tool in self.request.tools}
        self._probe = None if self.search is None else self.search.among(offered)
        held = frozenset() if self._probe is None else self._probe.held
        self.prepared = prepare_request(self.request, self.dialect, held)
        self._large = 0

    def encode(self, encode: Encode) -> bytes:
        """Return the body, without the oldest pictures if it is too large."""
        body = encode(self.prepared.request, self.dialect)
        limit = self.dialect.max_body_bytes
        if limit is not None and len(body) > limit and self.dialect.pictures:
            request, count = without_oldest_images(self.prepared.request, len(body) - limit)
            if count:
                self._large = count
                self.prepared = self.prepared._replace(request=request)
                body = encode(request, self.dialect)
        self.size = len(body)
        return body

    def apply(self, change: Change | ToolSearch, error: ModelError) -> bool:
        """Change the attempt; False if nothing changes that was not tried before."""
        words = one_line(error.detail, MAX_WORDS)
        if isinstance(change, ToolSearch):
            if not self._search(replace(change, words=words)):
                return False
        else:
            dialect = apply_fields(self.dialect, change.fields)
            if change.name and change.kind in {"tool_schema", "tool_name"}:
                withheld = dialect.withheld_tools | {change.name}
                dialect = apply_fields(dialect, {"withheld_tools": withheld})
                self._found.append(RequestLoss("tool", name=change.name))
            elif change.kind == "picture":
                count = len(images_in(self.request.messages))
                self._found.append(RequestLoss("pictures", count))
            elif change.kind == "tools":
                self._found.append(RequestLoss("tools", len(self.request.tools)))
            if dialect in self._tried:
                return False
            self._tried.add(dialect)
            self.dialect = dialect
            self._learned.append((change, words))
        self.is_first = False
        self._prepare()
        return True

    def _search(self, begun: ToolSearch) -> bool:
        """Go on with the search for a refused tool, or begin one."""
        offered = {tool.name for tool in self.request.tools}
        if self.search is None or not {*self.search.suspects} <= offered:
            self.search = begun
            return True
        narrowed = self.search.with_refusal()
        if narrowed is None:
            return False
        self.search = narrowed
        return True

    def notes(self) -> list[RequestLoss]:
        """Return notes about the parts that were left out, without repetitions."""
        whats = {each.what for each in self._found}
        notes = [*self._found, *(each for each in self.prepared.notes if each.what not in whats)]
        if self._large and self._is_new_loss():
            notes.append(RequestLoss("large_pictures", self._large))
        return notes

    def _is_new_loss(self) -> bool:
        """Return whether people do not know yet that pictures are left out for their size."""
        is_learned = any(change.kind == "body_size" for change, _ in self._learned)
        newest = images_in(self.request.messages[-1:])
        return is_learned or bool(newest)

    def lessons(
        self, server: ModelServer, version: str
    ) -> tuple[list[Lesson], list[LessonKey]] | None:
        """Return the lessons of the accepted request and the outdated ones; None without any."""
        model = self.request.model
        learned = {}
        for change, words in self._learned:
            if not change.is_kept:
                continue
            lesson = Lesson(
                provider=server.provider,
                address=server.address,
                model="" if change.is_of_address else model,
                kind=change.kind,
                name=change.name,
                change=dict(change.fields),
                words=words,
                version=version,
            )
            learned[lesson.key] = lesson
        forgotten = self._end_search(server, version, learned)
        return ([*learned.values()], forgotten) if learned or forgotten else None

    def _end_search(
        self, server: ModelServer, version: str, learned: dict[LessonKey, Lesson]
    ) -> list[LessonKey]:
        """Add the finding of a search from the accepted request; return the keys that it ends."""
        search, probe = self.search, self._probe
        if search is None or probe is None:
            return []
        key = LessonKey(*server, self.request.model, SEARCH_KIND, "")
        if probe != search:  # some suspects are not offered any more: an answer proves nothing
            return [key]
        narrowed = search.with_answer()
        lesson = Lesson(
            **{**key._asdict(), "name": narrowed.found},
            change={} if narrowed.found else narrowed.as_fields(),
            words=narrowed.words,
            version=version,
        )
        learned[lesson.key] = lesson
        if narrowed.found:
            self._found.append(RequestLoss("tool", name=narrowed.found))
            return [key]
        return []


def stated_version(headers: Mapping[str, str]) -> str:
    """Return the version that a server states in its headers, "" if it states none."""
    versions = [headers.get(name, "") for name in _VERSION_HEADERS]
    server = headers.get("server", "")
    if any(char.isdigit() for char in server):  # a name alone is that of a proxy, such as nginx
        versions.append(server)
    return one_line(" ".join(filter(None, versions)), 200)
