"""The view of a session: a fold over its events into rows to print and what moves below them."""

import json
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from internal.channels.cli.session.looks import Glyphs
from internal.channels.cli.session.reply import CLIPPED_FROM, Reply
from internal.channels.cli.session.rows import Rows
from internal.channels.cli.session.text import Fragments, Line, rows_of
from internal.channels.cli.session.words import Words
from internal.channels.cli.session.work import RunState

_GONE = {"completed", "failed", "cancelled"}


@dataclass(frozen=True)
class _Item:
    """Lines to print. Items of different kinds are set apart by a blank row."""

    kind: str
    lines: tuple[Line, ...] = ()
    call: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    reply: Reply | None = None


class View:
    """Takes the events of one session, in order, as JSON.

    `own` holds what this terminal sent: its words are shown when they are sent, not once more.
    """

    def __init__(self, words: Words, glyphs: Glyphs) -> None:
        self.runs: dict[str, RunState] = {}
        self.plan: Mapping[str, Any] | None = None
        self.output: tuple[str, str] | None = None
        """The last tool's name and what it gave."""
        self.ended: deque[str] = deque(maxlen=64)
        """The tasks that ended, oldest first."""
        self.stopped: set[str] = set()
        """The tasks that this terminal asked to stop."""
        self.rows = Rows(words, glyphs)
        self._words = words
        self._glyphs = glyphs
        self._queue: list[_Item] = []
        self._held: list[_Item] = []
        self._reply: Reply | None = None
        self._last_said = ""
        self._last_kind = ""
        self._own_words: list[str] = []
        self._own_tasks: set[str] = set()

    @property
    def current(self) -> RunState | None:
        """The run at work, else the one that is next."""
        running = [run for run in self.runs.values() if run.status == "running"]
        return next(iter(running or self.runs.values()), None)

    def sent(self, text: str, remark: str = "") -> None:
        """Show words of this terminal."""
        self._own_words.append(text)
        self.put("you", self.rows.you(text, remark))

    def unsent(self, text: str) -> None:
        """Forget words that the host did not take."""
        if text in self._own_words:
            self._own_words.remove(text)

    def expect(self, run_id: str, task_id: str, status: str = "queued") -> None:
        """Count with a run before its first event is here."""
        if task_id not in self.ended and run_id not in self.runs:
            self.runs[run_id] = RunState(task_id, status, time.time())

    def again(self, role: str, text: str) -> None:
        """Show what was said before this terminal came."""
        if role == "user":
            self.put("you", self.rows.you(text))
            return
        self._queue.append(_Item("say", reply=Reply("", "", self._glyphs, text)))

    def forget(self) -> None:
        """Begin with another session: what is printed stays, what is open is not shown."""
        self.runs, self.plan, self.output = {}, None, None
        self._reply, self._held, self._own_words = None, [], []

    def speak(self, words: Words) -> None:
        """Go on in another language."""
        self._words, self.rows = words, Rows(words, self._glyphs)

    def owns(self, task_id: str) -> None:
        """Remember that the first words of a task are shown already."""
        self._own_tasks.add(task_id)

    def put(self, kind: str, lines: Iterable[Line]) -> None:
        """Print lines, behind a reply that is under way."""
        self._add(_Item(kind, tuple(lines)))

    def take(self, envelope: bytes) -> None:
        """Take an event."""
        event = json.loads(envelope)
        if event.get("is_subtask"):
            return
        payload, run_id = event["payload"], event["run_id"]
        match event["event"]:
            case "workflow.node.output.delta":
                self._grow(run_id, payload)
            case "partial":
                self._set(run_id, payload)
            case "workflow.node.output.summary":
                self._complete(run_id, payload)
            case "workflow.tool.started" | "workflow.tool.progress" | "workflow.tool.completed":
                self._tool(run_id, event["event"], payload)
            case "workflow.input.received":
                self._heard(event["task_id"], payload)
            case _:
                self._moved(event, payload)

    def print(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print above now, and those to show below until the next call."""
        final: list[Fragments] = []
        for item in self._queue:
            final += self._printed(item, width)
        self._queue = []
        tail: list[Fragments] = []
        if self._reply is not None:
            rows, tail = self._replied(self._reply, width, complete=False)
            final += rows
        for item in self._held:
            tail += [row for line in item.lines for row, _ in rows_of(line, width)]
        return final, tail

    def _moved(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        match event["event"]:
            case "workflow.lifecycle.updated":
                self._live(event, payload)
            case "workflow.plan.updated":
                known = self.plan or {}
                self.plan = payload
                if known.get("steps") is None or known.get("version") != payload["version"]:
                    self.put("row", [self.rows.plan(payload)])
            case "workflow.question.asked":
                asked = self._words.say("asks", title=payload["title"])
                self.put("row", [self.rows.note(asked)])
            case "workflow.result.final":
                self._finish(event, payload)
            case "workflow.result.cancelled":
                self._cancelled(event, payload)
            case _:
                pass

    def _live(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        run_id, status = event["run_id"], payload["status"]
        if status in _GONE:
            return  # the terminal event follows
        known = self.runs.get(run_id)
        if known is None:
            self.runs[run_id] = RunState(event["task_id"], status, _moment(event))
        else:
            if status == "running" and known.status != "running":
                known.since = _moment(event)
                self.plan = None
            known.status = status

    def _grow(self, run_id: str, delta: Mapping[str, Any]) -> None:
        if run := self.runs.get(run_id):
            run.thinking = bool(delta.get("reasoning"))
        if not delta.get("reasoning"):
            self._saying(run_id, delta["node_id"]).grow(delta)

    def _set(self, run_id: str, partial: Mapping[str, Any]) -> None:
        if not partial["node_id"].endswith(":say"):
            return
        if self._saying(run_id, partial["node_id"]).set(partial):
            self._queue.append(_Item("note", (self.rows.note(self._words.starts_over),)))

    def _complete(self, run_id: str, summary: Mapping[str, Any]) -> None:
        if run := self.runs.get(run_id):
            run.tokens += sum(summary["usage"].values())
            run.thinking = False
        if summary["content"] or self._reply is not None:
            self._saying(run_id, summary["node_id"]).complete(summary["content"])
            self._close()

    def _saying(self, run_id: str, node_id: str) -> Reply:
        if self._reply is None or self._reply.place != (run_id, node_id):
            self._close()
            self._reply = Reply(run_id, node_id, self._glyphs)
        return self._reply

    def _close(self) -> None:
        """Print the reply that is under way to its end, and what was held back for it."""
        if self._reply is not None:
            self._last_said = self._reply.text
            self._queue.append(_Item("say", reply=self._reply))
            self._reply = None
        self._queue += self._held
        self._held = []

    def _tool(self, run_id: str, name: str, payload: Mapping[str, Any]) -> None:
        run = self.runs.get(run_id)
        match name.rpartition(".")[2]:
            case "started" if run is not None:
                run.tools[payload["call_id"]], run.progress = payload, ""
            case "progress" if run is not None:
                lines = payload["text"].strip().splitlines()
                run.progress = lines[-1] if lines else run.progress
            case "completed":
                started = {} if run is None else run.tools.pop(payload["call_id"], {})
                if run is not None:
                    run.progress = ""
                text = payload.get("error") or payload.get("result", "")
                self.output = (payload["tool_name"], text)
                self._add(_Item("row", call=(started, payload)))
            case _:
                pass

    def _heard(self, task_id: str, payload: Mapping[str, Any]) -> None:
        text = payload["task"]
        if text in self._own_words:
            self._own_words.remove(text)
        elif task_id not in self._own_tasks or payload.get("steer"):
            channel = payload["channel"]
            remark = self._words.noted if payload.get("steer") else ""
            self.put("you", self.rows.you(text, remark if channel == "cli" else channel))

    def _finish(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        answer = result["final_answer"]
        told = answer.strip() == self._last_said.strip() or len(answer) > CLIPPED_FROM
        if answer and not told:
            reply = Reply(event["run_id"], "result", self._glyphs, answer)
            self._queue.append(_Item("say", reply=reply))
        mark = self._glyphs.ok
        if error := result.get("error"):
            mark = self._glyphs.failed
            self.put("row", [self.rows.failed(error)])
        elif result["stop_reason"] == "max_iterations":
            self.put("note", [self.rows.note(self._words.limit)])
        for kept in result.get("attachments", ()):
            told_of = self._words.say("files_kept", name=kept["name"], size=kept["size"])
            self.put("row", [self.rows.faint(f"{self._glyphs.artifact} {told_of}")])
        self.put("over", [self.rows.over(result, mark)])
        self._gone(event)

    def _cancelled(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        told = self._words.stopped
        if event["task_id"] not in self.stopped and result["requested_via"] != "cli":
            who = {"who": result["requested_by"], "via": result["requested_via"]}
            told = self._words.say("stopped_by", **who)
        self.put("over", [self.rows.faint(f"{self._glyphs.stopped} {told}")])
        self._gone(event)

    def _gone(self, event: Mapping[str, Any]) -> None:
        self.runs.pop(event["run_id"], None)
        self._last_said = ""
        self.ended.append(event["task_id"])

    def _add(self, item: _Item) -> None:
        (self._queue if self._reply is None else self._held).append(item)

    def _printed(self, item: _Item, width: int) -> list[Fragments]:
        if item.reply is not None:
            return self._replied(item.reply, width, complete=True)[0]
        lines = item.lines
        if item.call is not None:
            lines = tuple(self.rows.tool(*item.call, width))
        rows = [row for line in lines for row, _ in rows_of(line, width)]
        return [*self._apart(item.kind), *rows]

    def _replied(
        self, reply: Reply, width: int, *, complete: bool
    ) -> tuple[list[Fragments], list[Fragments]]:
        final, tail, begins = reply.rows(width, complete=complete)
        if begins:
            final = [*self._apart("say"), *final]
        elif tail and not reply.begun and self._last_kind not in {"", "row"}:
            tail = [(), *tail]
        return final, tail

    def _apart(self, kind: str) -> list[Fragments]:
        """Return a blank row where one is due: between people's words, work and what ends it."""
        last, self._last_kind = self._last_kind, kind
        close = (last == kind != "you") or {last, kind} == {"row", "say"}
        return [()] if last and not close else []


def _moment(event: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()
