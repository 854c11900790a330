"""Client of a gateway: one method per operation, one HTTP request each.

Standard library only: a one-shot command through a running gateway must start fast.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from internal.channels.cli.exit_codes import CONFIG, FAILED, USAGE, CliExit
from internal.channels.cli.input_files import InputFile
from internal.channels.cli.records import (
    AgentDefaults,
    AppliedFiles,
    ArtifactItem,
    AuditItem,
    BackgroundCommandItem,
    BackgroundOutput,
    ChangedFileItem,
    DeadLetterItem,
    GrantedRole,
    IssuedCode,
    ListedSubtask,
    ListedTaskTree,
    PersonItem,
    QuestionItem,
    RatedTaskItem,
    RuleItem,
    RunCommand,
    SessionItem,
    SessionMove,
    StreamBatch,
    StreamRow,
    TaskItem,
    TaskRequest,
    TaskState,
    TranscriptMessage,
    UnusedFilesCount,
    UsageItem,
    UsageKey,
    WaitingItem,
)
from internal.channels.cli.task_request import Ids
from internal.channels.cli.transports.interface import (
    RefusedStream,
    Response,
    Transport,
    Unreachable,
    Upload,
)
from internal.channels.cli.transports.sse import StreamFrame, StreamParser
from internal.channels.commands.records import ListedMcpServer, ListedSkill
from internal.normal_forms.untrusted_marks import without_marks

T = TypeVar("T")

RETRY_SECONDS = 5.0
"""Time during which a request is repeated while the gateway cannot be reached."""
_PAUSE_SECONDS = 0.25
_PAGE = 500
_NO_CONTENT, _ERROR, _CONFLICT, _TOO_MANY, _SERVER_ERROR = 204, 400, 409, 429, 500
_CONTROLS = {"connected", "replay.done", "workflow.stream.dropped", "stream.reset", "hb", "bye"}


class GatewayError(CliExit):
    """The gateway refused a request or cannot be reached. The message is for people.

    `reason` is the code of the refusal for programs, "" if there is none.
    """

    def __init__(
        self, code: int, message: str, status: int | None = None, reason: str = ""
    ) -> None:
        super().__init__(code, message)
        self.status, self.reason = status, reason


class GatewayUnreachable(GatewayError):
    """The gateway did not answer within the retry time."""

    def __init__(self, reason: Unreachable) -> None:
        super().__init__(FAILED, f"The gateway does not answer: {reason}.")


class GatewayClient:
    """All operations of a gateway that the terminal uses.

    Each method raises GatewayError when the operation is refused or fails. Requests that may be
    sent twice are repeated for `retry_seconds` while the gateway cannot be reached; `on_retry` is
    called once per repeated request.
    """

    def __init__(
        self,
        transport: Transport,
        retry_seconds: float = RETRY_SECONDS,
        on_retry: Callable[[Unreachable], None] = lambda _reason: None,
    ) -> None:
        self.transport = transport
        self._retry_seconds = retry_seconds
        self._on_retry = on_retry

    async def defaults(self) -> AgentDefaults:
        """Return the default model and mode, the profiles and the limits of a run."""
        me = await self._get("/api/me", {}, dict)
        known = await self._get("/api/profiles", {}, dict)
        return self._parse(
            lambda _: AgentDefaults(
                me["model"],
                known["default"],
                [one["name"] for one in known["profiles"]],
                me["provider"] == "offline",
                known["limits"]["max_iterations"],
                known["limits"]["max_cost"],
                known["limits"]["timeout_seconds"],
                me["permission_mode"],
                me["isolated"],
                me["network"],
                known["limits"]["max_tokens"],
                me["is_priced"],
            ),
            None,
        )

    async def upload(
        self, file: InputFile, check: Callable[[], None] = lambda: None
    ) -> Mapping[str, str]:
        """Store a file and return the attachment for a task.

        `check` is called before each piece is sent; an exception from it ends the upload.
        """

        def chunks() -> Iterator[bytes]:
            try:
                for piece in file.chunks():
                    check()
                    yield piece
            except GatewayError:
                raise
            except CliExit as error:
                raise GatewayError(error.code, str(error)) from None

        path = f"/api/attachments?{urlencode({'name': file.name})}"
        body = Upload(file.media_type, file.size, chunks)
        try:
            return await self._send("PUT", path, body, _attachment, retry=True)
        except GatewayError as error:
            raise _about_file(file, error) from None

    async def submit(self, request: TaskRequest, check: Callable[[], None] = lambda: None) -> Ids:
        """Upload the files of a task, store it and queue its run; `check` is as for `upload`."""
        attachments = [await self.upload(file, check) for file in request.files]
        check()
        body: dict[str, Any] = {
            "task": request.task,
            "options": dict(request.options),
            "idempotency_key": _new_key(),
            "attachments": attachments,
            "one_shot": request.one_shot,
            **(
                {"commands": [each._asdict() for each in request.commands]}
                if request.commands
                else {}
            ),
        }
        optional = {"session_id": request.session_id, "profile": request.profile}
        body |= {name: value for name, value in optional.items() if value is not None}
        return await self._send("POST", "/api/tasks", body, _ids, retry=True)

    async def steer(
        self, task_id: str, text: str, seen: str = "", commands: Sequence[RunCommand] = ()
    ) -> bool:
        """Steer the active run of a task; return False if the text became the next task.

        `seen` is the id of the newest event that was shown when it was written, "" for now.
        `commands` go along with it.
        """
        path = f"/api/tasks/{_quoted(task_id)}/steer"
        body: dict[str, Any] = {"text": text, "idempotency_key": _new_key()}
        if commands:
            body["commands"] = [each._asdict() for each in commands]
        if seen:
            body["seen"] = seen
        return await self._send(
            "POST", path, body, lambda made: made["taken_as"] == "steering", retry=True
        )

    async def waiting(self, session_id: str) -> list[WaitingItem]:
        """Return the messages of a session that no model has read."""
        path = f"/api/sessions/{_quoted(session_id)}/messages"
        return await self._get(path, {"limit": 1}, _waiting)

    async def take_back(self, session_id: str, number: int) -> bool:
        """Take a message back; return False if a model has read it."""
        path = f"/api/sessions/{_quoted(session_id)}/waiting/{number}"
        try:
            await self._send("DELETE", path, None, _ignore, retry=True)
        except GatewayError as error:
            if error.status != _CONFLICT:
                raise
            return False
        return True

    async def stop(self, task_id: str, *, retry: bool = True) -> None:
        """Store a stop request. A task that has ended is not an error."""
        path = f"/api/tasks/{_quoted(task_id)}/stop"
        try:
            await self._send("POST", path, {"idempotency_key": _new_key()}, _ignore, retry=retry)
        except GatewayError as error:
            if error.status != _CONFLICT:
                raise

    async def resume(self, task_id: str) -> Ids:
        """Continue a failed or stopped task as a new task of its session."""
        return await self._send("POST", f"/api/tasks/{_quoted(task_id)}/resume", {}, _ids)

    async def apply_changes(self, task_id: str) -> AppliedFiles:
        """Apply the worktree changes of an ended subtask to the folder of its creator."""
        path = f"/api/tasks/{_quoted(task_id)}/apply"
        return await self._send(
            "POST", path, {}, lambda made: AppliedFiles(made["folder"], tuple(made["paths"]))
        )

    async def move_to_background(self, task_id: str) -> None:
        """Move an unfinished task to the background of its session."""
        path = f"/api/tasks/{_quoted(task_id)}/background"
        await self._send("POST", path, {}, _ignore, retry=True)

    async def task_trees(
        self, session_id: str | None = None, limit: int = 50
    ) -> list[ListedTaskTree]:
        """Return tasks with the subtasks below them, newest first."""
        found: list[Mapping[str, Any]] = []
        cursor: str | None = ""
        count = 0
        while cursor is not None and count < limit:
            # a subtask is newer than the tasks above it, so it is on their page or an earlier one
            query = {"session_id": session_id, "subtasks": "true", "limit": _PAGE}
            more = {"cursor": cursor} if cursor else {}
            page, roots, cursor = await self._get("/api/tasks", {**query, **more}, _task_page)
            found, count = [*found, *page], count + roots
        return self._parse(lambda _: _task_trees(found), None)[:limit]

    async def tasks(
        self, session_id: str | None = None, limit: int = 50, *, subtasks: bool = False
    ) -> list[TaskItem]:
        """Return tasks, newest first, with `subtasks` also the tasks that runs created."""
        query = {"limit": limit, "session_id": session_id, "subtasks": "true" if subtasks else None}
        return await self._get("/api/tasks", query, _items("tasks", TaskItem))

    async def task(self, task_id: str) -> TaskState:
        """Return a task with its newest run."""
        return await self._get(f"/api/tasks/{_quoted(task_id)}", {}, _task_state)

    async def sessions(self, limit: int = 50) -> list[SessionItem]:
        """Return sessions, most recently active first."""
        return await self._get("/api/sessions", {"limit": limit}, _items("sessions", SessionItem))

    async def session_choices(self, session_id: str) -> tuple[str | None, bool]:
        """Return the mode of the newest task of a session, and whether its plans were reviewed."""
        return await self._get(
            f"/api/sessions/{_quoted(session_id)}",
            {},
            lambda found: (found["permission_mode"], found["plan_review"] == "always"),
        )

    async def commands(self, session_id: str) -> list[BackgroundCommandItem]:
        """Return the background commands of a session, oldest first."""
        found = await self._get(f"/api/sessions/{_quoted(session_id)}/commands", {}, dict)
        return self._parse(
            lambda _: [
                BackgroundCommandItem(
                    one["id"], one["command"], one["ended"], one["exit_code"], one["address"]
                )
                for one in found["commands"]
            ],
            None,
        )

    async def command_output(self, session_id: str, command_id: str) -> BackgroundOutput:
        """Return the end of the output of a background command."""
        path = f"/api/sessions/{_quoted(session_id)}/commands/{_quoted(command_id)}/output"
        return await self._get(
            path,
            {},
            lambda found: BackgroundOutput(found["text"], found["missing_bytes"], found["end"]),
        )

    async def stop_command(self, session_id: str, command_id: str) -> None:
        """Stop a background command. One that has ended is not an error."""
        path = f"/api/sessions/{_quoted(session_id)}/commands/{_quoted(command_id)}/stop"
        await self._send("POST", path, {}, _ignore, retry=True)

    async def rename(self, session_id: str, title: str) -> None:
        """Change the title of a session."""
        path = f"/api/sessions/{_quoted(session_id)}"
        await self._send("PATCH", path, {"title": title}, _ignore, retry=True)

    async def move(self, session_id: str, host: str) -> SessionMove:
        """Assign the next tasks of a session to a host; "" allows any host."""
        path = f"/api/sessions/{_quoted(session_id)}/move"
        return await self._send("POST", path, {"host": host}, _session_move)

    async def mark_read(self, session_id: str) -> None:
        """Record that the person has read a session."""
        path = f"/api/sessions/{_quoted(session_id)}"
        await self._send("PATCH", path, {"read": True}, _ignore)

    async def fork(self, session_id: str, run_id: str) -> str:
        """Create a session with the messages of another one before a run; return its id."""
        path = f"/api/sessions/{_quoted(session_id)}/fork"
        return await self._send(
            "POST", path, {"run_id": run_id}, lambda made: str(made["session_id"])
        )

    async def remove(self, session_id: str) -> None:
        """Delete a session and everything that belongs to it."""
        path = f"/api/sessions/{_quoted(session_id)}"
        await self._send("DELETE", path, None, _ignore, retry=True)

    async def transcript(self, session_id: str) -> list[TranscriptMessage]:
        """Return the messages of a session that have text, oldest first."""
        messages = [_message(one) for one in await self.messages(session_id)]
        return [one for one in messages if one.text.strip()]

    async def messages(self, session_id: str) -> list[Mapping[str, Any]]:
        """Return all messages of a session as the API has them, oldest first."""
        path = f"/api/sessions/{_quoted(session_id)}/messages"
        pages: list[list[Mapping[str, Any]]] = []
        cursor: str | None = None
        while True:
            query = {"limit": _PAGE, "cursor": cursor}
            messages, cursor = await self._get(path, query, _messages_page)
            pages.insert(0, messages)
            if cursor is None:
                return [one for page in pages for one in page]

    async def usage(self, by: UsageKey, session_id: str | None = None) -> list[UsageItem]:
        """Return tokens and cost by day, session or model."""
        query = {"by": by, "session_id": session_id}
        return await self._get(
            "/api/usage", query, lambda found: [_usage(one) for one in found["usage"]]
        )

    async def questions(
        self, status: str | None = "open", session_id: str | None = None, limit: int = 50
    ) -> list[QuestionItem]:
        """Return the questions of a status, or all, newest first."""
        query = {"limit": limit, "status": status, "session_id": session_id}
        return await self._get(
            "/api/questions", query, lambda found: [_question(one) for one in found["questions"]]
        )

    async def question(self, question_id: str) -> QuestionItem:
        """Return a question."""
        return await self._get(f"/api/questions/{_quoted(question_id)}", {}, _question)

    async def answer(self, question_id: str, answer: Mapping[str, Any]) -> QuestionItem:
        """Answer a question with an answer as JSON. The first answer wins."""
        path = f"/api/questions/{_quoted(question_id)}/answer"
        body = {**answer, "idempotency_key": _new_key()}
        return await self._send("POST", path, body, _question, retry=True)

    async def pair(self, role: GrantedRole) -> IssuedCode:
        """Create a code that grants a role once."""
        return await self._send(
            "POST",
            "/api/pairings",
            {"role": role},
            lambda made: IssuedCode(made["code"], made["expires"]),
            retry=True,
        )

    async def create_link(self) -> tuple[str, int]:
        """Create a link that logs in one browser, once. Return it and its seconds."""
        return await self._send(
            "POST", "/api/links", {}, lambda made: (made["url"], made["seconds"]), retry=True
        )

    @property
    def key_page(self) -> str:
        """The address at which a key of a model is entered, "" if no page is served."""
        served = self.transport.via == "gateway"
        return f"{self.transport.address}/settings/models#key" if served else ""

    async def store_key(self, provider: str, key: str) -> str:
        """Store the key of a provider; return the title of the provider."""
        path = f"/api/providers/{_quoted(provider)}/key"
        view = await self._send("PUT", path, {"key": key}, dict, retry=True)
        titles = {one["name"]: str(one["title"]) for one in view["providers"]}
        return titles[provider]

    async def people(self) -> list[PersonItem]:
        """Return the people with a granted role, oldest first, without configured people."""
        return await self._get("/api/people", {}, _items("people", PersonItem))

    async def unpair(self, principal: str) -> None:
        """Revoke the granted role of a person."""
        await self._send("DELETE", f"/api/people/{_quoted(principal)}", None, _ignore, retry=True)

    async def rules(self) -> list[RuleItem]:
        """Return the permission rules that people granted, newest first."""
        return await self._get("/api/rules", {}, _items("rules", RuleItem))

    async def remove_rule(self, number: int) -> None:
        """Delete a permission rule."""
        await self._send("DELETE", f"/api/rules/{number}", None, _ignore, retry=True)

    async def dead_letters(self, limit: int = 50) -> list[DeadLetterItem]:
        """Return the messages and runs that were given up, newest first."""
        return await self._get(
            "/api/dead-letters", {"limit": limit}, _items("dead_letters", DeadLetterItem)
        )

    async def retry_dead_letter(self, letter_id: str, *, may_repeat: bool) -> None:
        """Retry a dead letter; `may_repeat` allows it for a message that may have been sent."""
        path = f"/api/dead-letters/{_quoted(letter_id)}/retry"
        await self._send("POST", path, {"may_repeat": may_repeat}, _ignore)

    async def dismiss_dead_letter(self, letter_id: str) -> None:
        """Remove a dead letter from the list."""
        path = f"/api/dead-letters/{_quoted(letter_id)}/dismiss"
        await self._send("POST", path, None, _ignore)

    async def feedback(self, limit: int = 50) -> list[RatedTaskItem]:
        """Return the feedback on tasks, the newest tasks first."""
        return await self._get("/api/feedback", {"limit": limit}, _items("feedback", RatedTaskItem))

    async def audit_entries(self, limit: int = 50) -> list[AuditItem]:
        """Return audit entries, newest first."""
        return await self._get("/api/audit", {"limit": limit}, _items("entries", AuditItem))

    async def skills(self) -> list[ListedSkill]:
        """Return the skills, including the ones withheld from the model."""
        return await self._get("/api/skills", {}, _items("skills", ListedSkill))

    async def mcp_servers(self) -> list[ListedMcpServer]:
        """Return the MCP servers, including the ones withheld from the model."""
        return await self._get("/api/mcp/servers", {}, _items("servers", ListedMcpServer))

    async def artifacts(
        self, wanted: Mapping[str, str | None], limit: int = 50
    ) -> list[ArtifactItem]:
        """Return artifacts, newest first. `wanted` are filters of `GET /api/artifacts`."""
        found: list[ArtifactItem] = []
        cursor: str | None = None
        while len(found) < limit:
            query = {**wanted, "limit": min(limit - len(found), _PAGE), "cursor": cursor}
            page, cursor = await self._get("/api/artifacts", query, _artifacts_page)
            found += page
            if cursor is None:
                break
        return found

    async def worktree_diff(self, task_id: str) -> ArtifactItem | None:
        """Return the newest diff of a task's worktree, or None."""
        query = {"task_id": task_id, "versions": "all", "limit": _PAGE}
        found = await self._get("/api/artifacts", query, _worktree_diffs)
        return found[0] if found else None

    async def changes(self, session_id: str) -> list[ChangedFileItem]:
        """Return the newest change of each file of the workspace by runs of a session."""
        path = f"/api/sessions/{_quoted(session_id)}/changes"
        return await self._get(path, {}, _items("changes", ChangedFileItem))

    async def change_diff(self, session_id: str, change_id: str) -> tuple[str, str]:
        """Return the difference of a file before and after a run, and why there is none or less."""
        path = f"/api/sessions/{_quoted(session_id)}/changes/{_quoted(change_id)}/diff"
        return await self._get(path, {}, lambda found: (found["diff"], found["note"]))

    async def unused_files(self, *, removes: bool) -> UnusedFilesCount:
        """Count the stored files that nothing uses, or remove and count them."""
        files = size = 0
        cursor: str | None = ""
        while cursor is not None:
            path = f"/api/unused-files?cursor={cursor}" if cursor else "/api/unused-files"
            method = "DELETE" if removes else "GET"
            part = await self._send(method, path, None, _unused_files)
            files, size, cursor = files + part[0], size + part[1], part[2]
        return UnusedFilesCount(files, size)

    async def artifact(self, artifact_id: str) -> ArtifactItem:
        """Return an artifact."""
        return await self._get(f"/api/artifacts/{_quoted(artifact_id)}", {}, _artifact)

    async def artifact_content(self, artifact_id: str) -> AsyncGenerator[bytes]:
        """Yield the content of an artifact. It may end too early without an error."""
        path = f"/api/artifacts/{_quoted(artifact_id)}/content"
        try:
            async with aclosing(self.transport.stream(path)) as pieces:
                async for piece in pieces:
                    yield piece
        except RefusedStream as refused:
            raise self._error(refused.response) from None
        except Unreachable as error:
            raise GatewayUnreachable(error) from None

    async def head(self, session_id: str) -> str:
        """Return the position after the last stored event, for `watch`."""
        path = f"/api/sessions/{_quoted(session_id)}/events"
        return await self._get(path, {"limit": 1}, lambda found: str(found["head"]))

    async def watch(
        self, session_id: str, after: str = "", *, give_up_seconds: float | None = None
    ) -> AsyncGenerator[StreamBatch]:
        """Yield the events of a session after a position, from the beginning for "".

        Reconnects when the stream ends, until the generator is closed. With `give_up_seconds`:

        Raises:
            GatewayUnreachable: no event arrived for this long while reconnecting.
        """
        connected, lost_at = True, 0.0
        while True:
            reason = Unreachable("the stream ended")
            try:
                async with aclosing(self._frames(session_id, after)) as batches:
                    async for frames in batches:
                        lost_at = 0.0
                        after = next((one.id for one in reversed(frames) if one.id), after)
                        batch = _batch(frames)
                        if batch.rows or batch.reset or not connected:
                            yield batch
                        connected = True
                        if batch.reset:
                            after = ""
                            break
            except Unreachable as error:
                reason = error
            lost_at = lost_at or time.monotonic()
            if give_up_seconds is not None and time.monotonic() > lost_at + give_up_seconds:
                raise GatewayUnreachable(reason)
            if not await self.transport.reconnect() and connected:
                connected = False
                yield StreamBatch(is_connected=False)
            await self.transport.sleep(_PAUSE_SECONDS)

    async def _frames(self, session_id: str, after: str) -> AsyncGenerator[list[StreamFrame]]:
        """Yield the frames of one connection as they arrive."""
        parser, path = StreamParser(), f"/api/sse?session_id={_quoted(session_id)}"
        try:
            async with aclosing(self.transport.stream(path, after)) as pieces:
                async for piece in pieces:
                    if frames := [*parser.feed(piece)]:
                        yield frames
        except RefusedStream as refused:
            raise self._error(refused.response) from None

    async def _get(self, path: str, query: Mapping[str, object], parse: Callable[[Any], T]) -> T:
        parameters = {name: str(value) for name, value in query.items() if value is not None}
        where = f"{path}?{urlencode(parameters)}" if parameters else path
        return await self._send("GET", where, None, parse, retry=True)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Upload | None,
        parse: Callable[[Any], T],
        *,
        retry: bool = False,
    ) -> T:
        content = json.dumps(body).encode() if isinstance(body, Mapping) else body
        give_up_at = time.monotonic() + self._retry_seconds * retry
        for attempt in count():
            try:
                response = await self.transport.request(method, path, content)
                if response.status >= _ERROR:
                    raise self._error(response)
                empty = response.status == _NO_CONTENT
                return self._parse(parse, b"null" if empty else response.body)
            except Unreachable as error:
                if time.monotonic() >= give_up_at:
                    raise GatewayUnreachable(error) from None
                if attempt == 0:
                    self._on_retry(error)
            await self.transport.sleep(_PAUSE_SECONDS)
            await self.transport.reconnect()
        raise AssertionError  # count() has no end

    def _parse(self, parse: Callable[[Any], T], body: bytes | None) -> T:
        try:
            return parse(None if body is None else json.loads(body))
        except (ValueError, KeyError, TypeError):
            message = f"{self.transport.address} answers, but not as a Larkspur gateway."
            raise GatewayError(FAILED, message) from None

    def _error(self, response: Response) -> Exception:
        """Return the error of a response; a rate or stream limit is worth a retry."""
        reason = ""
        try:
            error = json.loads(response.body)["error"]
            message, reason = str(error["message"]), str(error.get("code", ""))
        except (ValueError, TypeError, KeyError, AttributeError):
            message = f"The gateway answered with status {response.status}."
        if response.status == _TOO_MANY:
            return Unreachable(message.rstrip("."))
        if response.status in {401, 403}:
            return GatewayError(CONFIG, message, response.status)
        code = FAILED if response.status >= _SERVER_ERROR else USAGE
        return GatewayError(code, message, response.status, reason)


def _about_file(file: InputFile, error: GatewayError) -> GatewayError:
    """Return the error of an upload; the gateway does not name the file that it refuses."""
    if error.status is None:
        return error
    message = f"The file {file.name} cannot be sent: {error}"
    return GatewayError(error.code, message, error.status)


def _new_key() -> str:
    """Return an idempotency key, with which a request without a response is safe to repeat."""
    return os.urandom(16).hex()


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _session_move(moved: Any) -> SessionMove:
    return SessionMove(str(moved["previous"]), str(moved["saved"]))


def _ignore(_body: Any) -> None:
    return None


def _ids(made: Any) -> Ids:
    return Ids(made["session_id"], made["task_id"], made["run_id"])


Item = TypeVar(
    "Item",
    TaskItem,
    ChangedFileItem,
    SessionItem,
    PersonItem,
    RuleItem,
    AuditItem,
    RatedTaskItem,
    DeadLetterItem,
    ListedSkill,
    ListedMcpServer,
)


def _items(name: str, kind: type[Item]) -> Callable[[Any], list[Item]]:
    """Return a parser of a list of records whose fields are named as in the JSON."""
    return lambda found: [kind._make(_picked(one, kind._fields)) for one in found[name]]


def _picked(found: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [found[name] for name in names]


def _task_state(found: Any) -> TaskState:
    item, run = TaskItem._make(_picked(found, TaskItem._fields)), found["run"]
    return TaskState(item, found["profile"], run["run_id"], run["answer"], run["error"])


def _task_page(page: Any) -> tuple[list[Mapping[str, Any]], int, str | None]:
    """Return the tasks and subtasks of a page, how many of them are tasks, and the next page."""
    return page["tasks"], sum(not one["parent_task_id"] for one in page["tasks"]), page["next"]


def _task_trees(listed: Sequence[Mapping[str, Any]]) -> list[ListedTaskTree]:
    """Return the trees of listed tasks, newest first, with the subtasks by number."""
    parents = {one["task_id"]: one["parent_task_id"] for one in listed}
    below: dict[str, list[ListedSubtask]] = defaultdict(list)
    for one in listed:
        root = one["parent_task_id"]
        while parents.get(root):
            root = parents[root]
        if root is not None:
            below[root].append(ListedSubtask._make(_picked(one, ListedSubtask._fields)))
    trees = []
    for one in listed:
        if one["parent_task_id"] is None:
            item = TaskItem._make(_picked(one, TaskItem._fields))
            subtasks = sorted(below[item.task_id], key=lambda subtask: subtask.number)
            times = one["started_at"], one["completed_at"]
            trees.append(ListedTaskTree(item, *times, one["cost"] or 0.0, subtasks))
    return trees


def _question(view: Any) -> QuestionItem:
    return QuestionItem._make([*_picked(view, QuestionItem._fields[:-1]), view])


def _usage(found: Any) -> UsageItem:
    kinds = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    usage = found["usage"]
    read = sum(usage[kind] for kind in kinds)
    return UsageItem(found["key"], read, usage["output_tokens"], found["cost"])


def _unused_files(found: Any) -> tuple[int, int, str | None]:
    return found["files"], found["size"], found["next_cursor"]


def _artifact(found: Any) -> ArtifactItem:
    return ArtifactItem._make(_picked(found, ArtifactItem._fields))


def _worktree_diffs(page: Any) -> list[ArtifactItem]:
    return [_artifact(one) for one in page["artifacts"] if one["source_tool"] == "worktree"]


def _artifacts_page(page: Any) -> tuple[list[ArtifactItem], str | None]:
    return [_artifact(one) for one in page["artifacts"]], page["next_cursor"]


def _attachment(stored: Any) -> Mapping[str, str]:
    return {name: stored[name] for name in ("name", "media_type", "uri")}


def _messages_page(page: Any) -> tuple[list[Mapping[str, Any]], str | None]:
    return page["messages"], page["next"]


def _waiting(page: Any) -> list[WaitingItem]:
    return [
        WaitingItem(one["number"], one["waits_for"] == "given_back", one["task_id"], one["text"])
        for one in page["waiting"]
    ]


def _message(message: Any) -> TranscriptMessage:
    texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
    ran = [f"! {part['command']}" for part in message["parts"] if part["type"] == "command"]
    text = "\n".join([*ran, without_marks("".join(texts))])
    unwritten = message.get("unwritten", "")
    return TranscriptMessage(message["role"], text, message["created"], unwritten)


def _batch(frames: Iterable[StreamFrame]) -> StreamBatch:
    rows, reset = list[StreamRow](), False
    for frame in frames:
        if frame.event == "stream.reset":
            reset = True
            break
        if frame.data and frame.event not in _CONTROLS:
            rows.append(StreamRow(frame.id or "", frame.data))
    return StreamBatch(rows, reset=reset)
