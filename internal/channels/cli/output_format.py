"""The report of one run: rows of its stream in, lines of standard output and an exit code out.

Pure, and standard library only: it neither reads nor writes.
"""

import json
from collections.abc import Mapping
from typing import Any

from internal.channels.cli.exit_codes import CONFIG, DENIED, FAILED, LIMIT, OK, WAITING
from internal.channels.cli.output import replace_surrogates
from internal.channels.cli.question_text import render_question
from internal.channels.cli.task_request import Format, Ids
from internal.i18n.catalog import MessageCatalog

_CODES = {
    "final_answer": OK,
    "max_iterations": LIMIT,
    "timeout": LIMIT,
    "budget_exceeded": LIMIT,
    "rejected": DENIED,
}
_COMPLETED = {"final_answer", "max_iterations"}
_ASKED = ("question_id", "kind", "title", "options")
_CLIPPED_FROM = 10_000
"""An event holds an answer of this many characters whole for sure; a longer one may be clipped."""


class RunReport:
    """Takes the rows of a session's stream and keeps to one run and its subagents.

    `ended` becomes true with the run's terminal event, or when it waits for a person.
    """

    def __init__(self, output: Format, ids: Ids) -> None:
        self.ids = ids
        self.ended = False
        self._stream = output == "stream-json"
        self._output = output
        self._lines: list[bytes] = []
        self._denied: list[dict[str, Any]] = []
        self._questions: dict[str, Mapping[str, Any]] = {}
        self._result: dict[str, Any] = {"status": "queued", "stop_reason": None, "text": ""}
        self._error = ""
        self._key_refused = False

    @property
    def clipped(self) -> bool:
        """Say whether the answer may be longer than the event that told it."""
        return len(self._result["text"]) > _CLIPPED_FROM

    def complete(self, answer: str) -> None:
        """Take the whole answer from where runs are kept."""
        self._result["text"] = answer

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Open the report. `facts` say where and how the run is done."""
        if self._stream:
            self._lines.append(_line({"type": "init", **self.ids._asdict(), **facts}))

    def take(self, row_id: str, envelope: bytes) -> None:
        """Take an envelope, and its wire id or "" when it is ephemeral."""
        if self.ended or not (row_id or self._stream):
            return  # only the stream shows what is not stored
        event = json.loads(envelope)
        if self.ids.run_id not in {event.get("run_id"), event.get("correlation_id")}:
            return
        if self._stream:
            self._lines.append(_row(row_id, envelope))
        self._fold(event)

    def lines(self) -> bytes:
        """Return what is to be written now, and forget it."""
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def queued(self) -> bytes:
        """Return the last words of a shot that does not wait for its run."""
        if self._output == "text":
            return f"{self.ids.task_id}\n".encode()
        return self.lines() + self._summary(OK)

    def result(self, signalled: int | None = None) -> tuple[int, bytes]:
        """Return the exit code and the last words. `signalled` is what a signal asked for."""
        code = self._code(signalled)
        if self._output != "text":
            return code, self._summary(code)
        text = replace_surrogates(self._result["text"])
        return code, (text if text.endswith("\n") else f"{text}\n").encode() if text else b""

    def remarks(self) -> list[str]:
        """Return what a person should know besides the answer."""
        status, reason = self._result["status"], self._result["stop_reason"]
        remarks = [_denial(one) for one in self._denied]
        if self._error:
            remarks.append(self._error)
        elif status == "waiting":
            phrases = MessageCatalog("cli", "en")
            remarks.append(phrases("waits", task=self.ids.task_id))
            remarks += [
                "\n".join(render_question(one, phrases)) for one in self._questions.values()
            ]
        elif reason == "max_iterations":
            remarks.append("The answer is what there was at the limit of iterations.")
        elif status in {"failed", "cancelled"}:
            remarks.append(f"The run {self.ids.run_id} was {status}: {reason or 'no reason'}.")
        return remarks

    def _fold(self, event: Mapping[str, Any]) -> None:
        payload = event["payload"]
        own = event["run_id"] == self.ids.run_id
        match event["event"]:
            case "workflow.tool.completed" if payload["metadata"].get("denied"):
                named = {"call_id": payload["call_id"], "tool_name": payload["tool_name"]}
                metadata, error = payload["metadata"], payload.get("error", "")
                self._denied.append({**named, "rules": metadata["rules"], "error": error})
            case "workflow.question.asked":
                self._questions[payload["question_id"]] = payload
            case "workflow.question.answered":
                self._questions.pop(payload["question_id"], None)
            case "workflow.lifecycle.updated" if own:
                self._result["status"] = payload["status"]
                self._result["stop_reason"] = payload.get("stop_reason")
                self.ended = payload["status"] == "waiting"
            case "workflow.result.final" if own:
                self._finish(payload)
            case "workflow.result.cancelled" if own:
                reason = self._result["stop_reason"] or "user_stop"
                self._result |= {"status": "cancelled", "stop_reason": reason}
                self.ended = True
            case _:
                pass

    def _finish(self, payload: Mapping[str, Any]) -> None:
        reason = payload["stop_reason"]
        self._result |= {
            "status": "completed" if reason in _COMPLETED else "failed",
            "stop_reason": reason,
            "text": payload["final_answer"],
            "usage": payload["usage"],
            "cost": payload.get("cost"),
        }
        self._error = payload.get("error", "")
        self._key_refused = payload.get("error_code") == "model_key_refused"
        self.ended = True

    def _code(self, signalled: int | None) -> int:
        if signalled is not None:
            return signalled
        if self._result["status"] == "waiting":
            return WAITING
        if self._key_refused:
            return CONFIG
        code = _CODES.get(self._result["stop_reason"], FAILED)
        return DENIED if code == OK and self._denied else code

    def _summary(self, code: int) -> bytes:
        kind = {"type": "result"} if self._stream else {}
        usage = {"usage": None, "cost": None}
        asked = [{name: one[name] for name in _ASKED} for one in self._questions.values()]
        found = {"denied": self._denied, "questions": asked}
        rest = {**self.ids._asdict(), **found, "exit_code": code}
        error = {"error": self._error} if self._error else {}
        return _line({**kind, **usage, **self._result, **error, **rest})


def _row(row_id: str, envelope: bytes) -> bytes:
    # the envelope's own bytes: what a reader of the stream sees is what is stored
    head = f'{{"id":"{row_id}","event":' if row_id else '{"event":'
    return b"%s%s}\n" % (head.encode(), envelope)


def _line(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return replace_surrogates(text).encode() + b"\n"


def _denial(denied: Mapping[str, Any]) -> str:
    sentence = f"Denied: {denied['error'] or denied['tool_name']}"
    # as a shell reads them back
    quoted = (rule.replace("'", "'\\''") for rule in denied["rules"])
    flags = " ".join(f"--allow '{rule}'" for rule in quoted)
    return f"{sentence}\n  to allow it: {flags}" if flags else sentence
