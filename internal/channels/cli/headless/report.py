"""The report of a one-shot run: events in, lines of standard output and an exit code out.

Standard library only, without I/O.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from internal.channels.cli.artifact_files import FileFinder
from internal.channels.cli.command_output import short_id
from internal.channels.cli.exit_codes import CONFIG, DENIED, FAILED, LIMIT, OK, WAITING
from internal.channels.cli.headless.run_totals import RunTotals
from internal.channels.cli.output import replace_surrogates
from internal.channels.cli.question_text import render_question
from internal.channels.cli.records import format_size
from internal.channels.cli.task_request import Format, Ids
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.quantities import format_duration
from internal.i18n.runs import RunMessages

_EXIT_CODES = {
    "final_answer": OK,
    "max_iterations": LIMIT,
    "max_output": LIMIT,
    "timeout": LIMIT,
    "budget_exceeded": LIMIT,
    "rejected": DENIED,
}
_ENDED = {"completed", "failed", "cancelled"}
_NOTICES = {
    "workflow.notice",
    "workflow.node.left_out",
    "workflow.node.retry",
    "workflow.tool.completed",
}
_RESULTS = {"workflow.result.final", "workflow.result.cancelled"}
_COMPLETED = {"final_answer", "max_iterations", "max_output"}
_QUESTION_FIELDS = ("question_id", "kind", "title", "options")
_MAX_COMPLETE_CHARS = 10_000
"""Length from which the answer in an event may be truncated."""

_MAX_WHAT_CHARS = 200

REPORT_TASK = "Report the background tasks that have ended."
"""The instruction of a task that reports subtasks; see `domain.delegation.reports`."""
_FILE_FIELDS = ("artifact_id", "name", "version", "type", "media_type", "size", "sha256")


_OFFLINE_MODEL = "offline-demo"


class RunReport:
    """Collects the events of one run and its subagents from the stream of a session.

    `last_id` is the wire id of the newest event. `has_ended` becomes True with the run's terminal
    event, or when the run or its subtasks wait for a person and nothing else can continue.
    `find_file` returns the path of a produced file on this machine. `key_page` is the address at
    which a key of a model is entered, "" if no page is served.
    """

    def __init__(
        self,
        output: Format,
        ids: Ids,
        find_file: FileFinder = lambda *_about: None,
        *,
        key_page: str = "",
    ) -> None:
        self.ids = ids
        self.has_ended = False
        self.last_id = ""
        self._stream = output == "stream-json"
        self._output = output
        self._lines: list[bytes] = []
        self._denied: list[dict[str, Any]] = []
        self._not_run: list[dict[str, Any]] = []
        self._last_not_run = 0
        self._model = ""
        self._questions: dict[str, Mapping[str, Any]] = {}
        self._result: dict[str, Any] = {"status": "queued", "stop_reason": None, "text": ""}
        self._notices: list[str] = []
        self._asides: list[str] = []
        self._find_file, self._key_page = find_file, key_page
        self._files: dict[str, Mapping[str, Any]] = {}
        self._omitted_files = 0
        self._totals = RunTotals(ids.run_id)
        self._error = ""
        self._error_code = ""
        self._is_mismatch = False
        self._run_id = ids.run_id
        self._awaits_subtasks = False
        self._states: dict[str, str] = {}
        """The states of the run and its subtasks by run id; "awaits" one that waits for tasks."""
        self._subtasks: dict[str, str] = {}
        """The ids of the subtasks that have not ended, by run id."""
        self._depends_on: dict[str, Sequence[str]] = {}
        """The ids of the tasks that a subtask depends on, by its task id."""
        self._reports = {ids.task_id}
        """The ids of the tasks whose answers belong to the report."""

    @property
    def is_waiting(self) -> bool:
        """Whether the run waits for a person and nothing else can continue."""
        going_on = any(
            state == "running" or (state == "queued" and not self._is_blocked(run_id))
            for run_id, state in self._states.items()
        )
        return "waiting" in self._states.values() and not going_on

    def _is_blocked(self, run_id: str) -> bool:
        """Whether a queued run depends on a task that has not ended."""
        needed = self._depends_on.get(self._subtasks.get(run_id, ""), ())
        return not {*needed}.isdisjoint(self._subtasks.values())

    @property
    def subtasks(self) -> list[str]:
        """The ids of the subtasks that have not ended."""
        return [*self._subtasks.values()]

    @property
    def had_subtasks(self) -> bool:
        """Whether the run created subtasks."""
        return len(self._states) > 1

    def follow_subtasks(self) -> None:
        """Accept further events until all subtasks have ended."""
        self.has_ended, self._awaits_subtasks = False, True

    def follow_report(self, task_id: str, run_id: str) -> None:
        """Accept the events of a run that reports subtasks; its answer comes after the first."""
        self.has_ended, self._run_id = False, run_id
        self._totals.add_run(run_id)
        self._reports.add(task_id)

    def has_task(self, task_id: str) -> bool:
        """Return whether a task is the task of the report or one that `follow_report` added."""
        return task_id in self._reports

    def resume(self, open_questions: Collection[str]) -> bool:
        """Accept further events if a question is no longer open. Return True if so."""
        for question_id, question in self._questions.items():
            if question_id not in open_questions:
                self._states[question["run_id"]] = "queued"
        self.has_ended = self.is_waiting
        return not self.has_ended

    @property
    def is_answered(self) -> bool:
        """Whether the run ended with a final answer."""
        return bool(self._result["stop_reason"] == "final_answer")

    @property
    def answer(self) -> str:
        """The answer of the run."""
        return str(self._result["text"])

    def set_value(self, value: Any) -> None:
        """Set the JSON value of the answer, which text output shows instead of the answer."""
        self._result |= {"value": value}
        self._result["text"] = json.dumps(value, ensure_ascii=False, indent=2)

    def set_problem(self, problem: str) -> None:
        """Report that the answer does not match the schema."""
        self._is_mismatch = True
        self._error = f"The answer does not match the JSON schema: {problem}"

    @property
    def is_truncated(self) -> bool:
        """Whether the run's answer may be longer than the text in its event."""
        return len(self._result["text"]) > _MAX_COMPLETE_CHARS

    def set_answer(self, answer: str) -> None:
        """Replace the answer by the complete one."""
        self._result["text"] = answer

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Start the report. `facts` are further fields of the `init` line."""
        if self._stream:
            self._lines.append(_json_line({"type": "init", **self.ids._asdict(), **facts}))

    def add_event(self, row_id: str, envelope: bytes) -> None:
        """Add an event envelope. `row_id` is its wire id, "" for an ephemeral event."""
        if self.has_ended or not (row_id or self._stream):
            return  # only stream-json shows ephemeral events
        event = json.loads(envelope)
        if not {self.ids.run_id, self._run_id} & {event.get("run_id"), event.get("correlation_id")}:
            return
        self.last_id = row_id or self.last_id
        if self._stream:
            self._lines.append(_stream_line(row_id, envelope))
        self._apply(event)

    def take_lines(self) -> bytes:
        """Return the lines that are due and remove them from the report."""
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def take_notices(self) -> list[str]:
        """Return the messages that are due on standard error, and remove them from the report."""
        notices, self._notices = self._notices, []
        return notices

    def take_asides(self) -> list[str]:
        """Return the lines that are of interest while a person watches, and remove them."""
        asides, self._asides = self._asides, []
        return asides

    def format_queued(self) -> bytes:
        """Return the output of a task that is not waited for."""
        if self._output == "text":
            return f"{self.ids.task_id}\n".encode()
        return self.take_lines() + self._summary(OK)

    def result(self, signalled: int | None = None) -> tuple[int, bytes]:
        """Return the exit code and the final output.

        `signalled` is the exit code of a received signal.
        """
        code = self._code(signalled)
        if self._output != "text":
            return code, self._summary(code)
        text = replace_surrogates(self._result["text"])
        return code, (text if text.endswith("\n") else f"{text}\n").encode() if text else b""

    def messages(self) -> list[str]:
        """Return messages for standard error: files, refused calls, errors, open questions."""
        status, reason = self._result["status"], self._result["stop_reason"]
        is_unpriced = self._result.get("usage") and self._result.get("cost") is None
        messages = [*self._file_lines(), *(_format_denial(one) for one in self._denied)]
        messages += map(_format_not_run, self._not_run)
        if is_unpriced and self._model not in {"", _OFFLINE_MODEL}:
            messages.append(RunMessages("en")("no_price_of_run", model=self._model))
        if status == "completed" and self._last_not_run:
            messages.append(f"The run is {RunMessages('en').completed(self._last_not_run)}.")
        sentence = RunMessages("en").ended(reason or "", self._error_code)
        if self._is_mismatch:
            messages.append(self._error)
        elif self._error:
            details = RunMessages("en").details(reason or "", self._error_code, self._error)
            hint = RunMessages("en").key_hint(self._error_code, self._key_page)
            messages += filter(None, [sentence, f"  {details}" if details else "", hint])
        elif self.is_waiting:
            catalog = MessageCatalog("cli", "en")
            messages.append(catalog("task_waiting", task=short_id(self.ids.task_id)))
            messages += [
                "\n".join(render_question(one, catalog)) for one in self._questions.values()
            ]
        elif status == "completed" and sentence:
            messages.append(sentence)
        elif status in {"failed", "cancelled"}:
            messages.append(f"The run {self.ids.run_id} was {status}: {reason or 'no reason'}.")
        return messages

    def _apply(self, event: Mapping[str, Any]) -> None:
        payload = event["payload"]
        own = event["run_id"] == self._run_id
        self._note_state(event, payload)
        match event["event"]:
            case "workflow.tool.completed" if payload["metadata"].keys() & {"denied", "not_run"}:
                self._note_refusal(payload)
            case name if name in _NOTICES:
                self._add_notice(event, payload)
            case "workflow.node.output.summary" if own:
                self._note_reply(payload)
            case "workflow.artifact.manifest":
                self._files |= {one["name"]: one for one in payload["artifacts"]}
                self._omitted_files += payload.get("omitted", 0)
            case "workflow.question.asked":
                self._questions[payload["question_id"]] = {**payload, "run_id": event["run_id"]}
            case "workflow.question.answered":
                self._questions.pop(payload["question_id"], None)
            case "workflow.lifecycle.updated" if own:
                self._result["status"] = payload["status"]
                self._result["stop_reason"] = payload.get("stop_reason")
            case "workflow.result.final" if own:
                self._finish(payload)
            case "workflow.result.cancelled" if own:
                reason = self._result["stop_reason"] or "user_stop"
                self._result |= {"status": "cancelled", "stop_reason": reason}
                self.has_ended = True
            case _:
                pass

    def _note_reply(self, payload: Mapping[str, Any]) -> None:
        """Note the model of a reply and how long it thought."""
        self._model = payload["llm_model"]
        if payload.get("thinking"):
            took = format_duration(payload["thinking_ms"] / 1000)
            self._asides.append(RunMessages("en")("thought", time=took))

    def _note_refusal(self, payload: Mapping[str, Any]) -> None:
        """Note a call that was denied or returned to the model."""
        metadata, tool = payload["metadata"], payload["tool_name"]
        call = {"call_id": payload["call_id"]}
        if metadata.get("denied"):
            error, rules = payload.get("error", ""), metadata["rules"]
            self._denied.append({**call, "tool_name": tool, "rules": rules, "error": error})
        elif reason := metadata.get("not_run"):
            what = metadata["what"]
            self._not_run.append({**call, "tool": tool, "what": what, "reason": reason})

    def _note_state(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        run_id, task_id = event["run_id"], event.get("task_id", "")
        if event["event"] in _RESULTS:
            self._totals.add_end(event)
            self._states[run_id] = "ended"
            self._subtasks.pop(run_id, None)
            self.has_ended = self._awaits_subtasks and (not self._subtasks or self.is_waiting)
        elif event["event"] == "workflow.lifecycle.updated" and payload["status"] not in _ENDED:
            awaits = payload.get("stop_reason") == "await_tasks"
            self._states[run_id] = "awaits" if awaits else payload["status"]
            if event.get("is_subtask"):
                self._subtasks[run_id] = task_id
            self.has_ended = self.is_waiting
        elif event["event"] == "background.task.dispatched":
            self._depends_on[payload["task_id"]] = payload["depends_on"]
            self.has_ended = self.is_waiting

    def _add_notice(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        messages = RunMessages("en")
        match event["event"]:
            case "workflow.tool.completed":
                for remark in messages.call_remarks(payload["metadata"]):
                    self._notices.append(f"{tool_label(payload['tool_name'])}: {remark}")
                if failure := messages.call_failure(payload["metadata"]):
                    self._notices.append(f"{tool_label(payload['tool_name'])} failed: {failure}")
            case "workflow.node.retry":
                self._notices.append(messages.retry(payload, event.get("timestamp", "")))
            case "workflow.node.left_out":
                lost = payload["what"], payload["count"], payload.get("tool_name", "")
                self._notices.append(messages.left_out(*lost))
            case "workflow.notice":
                self._notices.append(payload["text"])
            case _:
                pass

    def _finish(self, payload: Mapping[str, Any]) -> None:
        reason = payload["stop_reason"]
        answers = [self._result["text"]] if self._run_id != self.ids.run_id else []
        self._result |= {
            "status": "completed" if reason in _COMPLETED else "failed",
            "stop_reason": reason,
            "text": "\n\n".join(filter(None, [*answers, payload["final_answer"]])),
        }
        if first := payload.get("instead_of"):
            self._notices.append(RunMessages("en").answered_by(payload["model"], first))
        self._error, self._error_code = payload.get("error", ""), payload.get("error_code", "")
        self._last_not_run = payload.get("calls_not_run", 0)
        self.has_ended = True

    def _code(self, signalled: int | None) -> int:
        if signalled is not None:
            return signalled
        if self.is_waiting:
            return WAITING
        if self._error_code == "model_key_refused":
            return CONFIG
        if self._is_mismatch:
            return FAILED
        code = _EXIT_CODES.get(self._result["stop_reason"], FAILED)
        return DENIED if code == OK and self._denied else code

    def _located_files(self) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Yield the newest version of each produced file, with its path on this machine."""
        for file in self._files.values():
            path = self._find_file(self.ids.session_id, file["name"], file["size"])
            yield {name: file[name] for name in _FILE_FIELDS}, path

    def _file_lines(self) -> Iterator[str]:
        for file, path in self._located_files():
            where = path or f"larkspur files get {file['artifact_id']}"
            yield f"File: {file['name']} ({format_size(file['size'])})  {where}"
        if self._omitted_files:
            yield MessageCatalog("cli", "en")("files_omitted", count=self._omitted_files)

    def _summary(self, code: int) -> bytes:
        kind = {"type": "result"} if self._stream else {}
        asked = [{name: one[name] for name in _QUESTION_FIELDS} for one in self._questions.values()]
        files = [{**one, "path": path} for one, path in self._located_files()]
        refused = {"denied": self._denied, "not_run": self._not_run}
        found = {**refused, "questions": asked, "files": files}
        rest = {**self.ids._asdict(), **found, "exit_code": code}
        error = {"error": self._error} if self._error else {}
        return _json_line({**kind, **self._totals.fields(), **self._result, **error, **rest})


def _stream_line(row_id: str, envelope: bytes) -> bytes:
    # not encoded again: the reader gets the stored bytes
    head = f'{{"id":"{row_id}","event":' if row_id else '{"event":'
    return b"%s%s}\n" % (head.encode(), envelope)


def _json_line(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return replace_surrogates(text).encode() + b"\n"


def _format_not_run(call: Mapping[str, Any]) -> str:
    first = str(call["what"]).partition("\n")[0]
    about = "" if first == call["tool"] else f" ({first[:_MAX_WHAT_CHARS]})"
    return (
        f"Not run: {tool_label(call['tool'])}{about}. {RunMessages('en').not_run(call['reason'])}"
    )


def _format_denial(denied: Mapping[str, Any]) -> str:
    sentence = f"Denied: {denied['error'] or tool_label(denied['tool_name'])}"
    # quoted for a POSIX shell
    quoted = (rule.replace("'", "'\\''") for rule in denied["rules"])
    flags = " ".join(f"--allow '{rule}'" for rule in quoted)
    return f"{sentence}\n  to allow it: {flags}" if flags else sentence
