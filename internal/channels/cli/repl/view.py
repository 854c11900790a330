"""The view of a session: a fold over its events into rows to print and what moves below them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from internal.channels.cli.render.event_rows import EventRows
from internal.channels.cli.render.question_panel import QuestionPanel
from internal.channels.cli.render.stream import MAX_COMPLETE_TEXT, ReplyStream
from internal.channels.cli.render.text import Fragments, StyledLine, wrap_line
from internal.channels.cli.render.theme import Glyphs
from internal.channels.cli.repl.open_question import OpenQuestion
from internal.channels.cli.repl.status_line import ActiveRuns, RunState
from internal.i18n.catalog import MessageCatalog


@dataclass(frozen=True)
class _Item:
    """Lines to print. Items of different kinds are set apart by a blank row."""

    kind: str
    lines: tuple[StyledLine, ...] = ()
    call: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    reply: ReplyStream | None = None


class SessionView:
    """Takes the events of one session, in order, as JSON.

    What this terminal sent is shown once, when it is sent. `asks`: open questions are shown
    elsewhere, so that they can be answered; else they are printed.
    """

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs, *, asks: bool = False) -> None:
        self.work = ActiveRuns()
        self.questions: dict[str, OpenQuestion] = {}
        """The open ones, by id, oldest first."""
        self.answering: set[str] = set()
        """Those whose answer by this terminal is under way."""
        self._refused: set[str] = set()
        self.plan: Mapping[str, Any] | None = None
        self.output: tuple[str, str] | None = None
        """The last tool's name and what it gave."""
        self.stopped: set[str] = set()
        """The tasks that this terminal asked to stop."""
        self.rows = EventRows(messages, glyphs)
        self.panel = QuestionPanel(messages, glyphs)
        self._messages = messages
        self._glyphs = glyphs
        self._asks = asks
        self._queue: list[_Item] = []
        self._held: list[_Item] = []
        self._reply: ReplyStream | None = None
        self._last_said = ""
        self._last_kind = ""
        self._own_words: list[str] = []
        self._own_tasks: set[str] = set()

    @property
    def current(self) -> RunState | None:
        """The run at work, else the one that is next."""
        return self.work.current

    def sent(self, text: str, remark: str = "") -> None:
        """Show words of this terminal."""
        self._own_words.append(text)
        self.put("you", self.rows.you(text, remark))

    def unsent(self, text: str) -> None:
        """Forget words that the client did not take."""
        if text in self._own_words:
            self._own_words.remove(text)

    def again(self, role: str, text: str) -> None:
        """Show what was said and is not seen here: before this terminal came, or not streamed."""
        if role == "user":
            self.put("you", self.rows.you(text))
            return
        self._queue.append(_Item("say", reply=ReplyStream("", "", self._glyphs, text)))

    def forget(self) -> None:
        """Begin with another session: what is printed stays, what is open is not shown."""
        self.work, self.plan, self.output, self.questions = ActiveRuns(), None, None, {}
        self._reply, self._held, self._own_words = None, [], []

    def speak(self, messages: MessageCatalog) -> None:
        """Go on in another language."""
        self._messages, self.rows = messages, EventRows(messages, self._glyphs)
        self.panel = QuestionPanel(messages, self._glyphs)

    def owns(self, task_id: str) -> None:
        """Remember that the first words of a task are shown already."""
        self._own_tasks.add(task_id)

    def put(self, kind: str, lines: Iterable[StyledLine]) -> None:
        """Print lines, behind a reply that is under way."""
        self._add(_Item(kind, tuple(lines)))

    def ask(self, view: Mapping[str, Any]) -> None:
        """Count with an open question."""
        asked = OpenQuestion(view)
        if self.questions.setdefault(asked.id, asked) is asked and not self._asks:
            self.put("row", self.panel.lines(asked))

    def close(self, question_id: str, answer: Mapping[str, Any], *, here: bool = False) -> None:
        """Print what became of an open question; `here`: this terminal answered it."""
        asked = self.questions.pop(question_id, None)
        if asked is not None:
            self._refused |= asked.refused(answer)
            self.put("row", self.panel.closed(asked, answer, here=here))

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
            tail += [row for line in item.lines for row in wrap_line(line, width)]
        return final, tail

    def _moved(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        match event["event"]:
            case "workflow.lifecycle.updated":
                if self.work.update_status(event, payload["status"]):
                    self.plan = None
            case "workflow.plan.updated":
                known = self.plan or {}
                self.plan = payload
                if known.get("steps") is None or known.get("version") != payload["version"]:
                    self.put("row", [self.rows.plan(payload)])
            case "workflow.question.asked" | "workflow.question.answered":
                self._question(event, payload)
            case "workflow.result.final":
                self._finish(event, payload)
            case "workflow.result.cancelled":
                self._cancelled(event, payload)
            case _:
                pass

    def _question(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        if event["event"] == "workflow.question.asked":
            self.ask({**payload, "run_id": event["run_id"]})
            return
        by = {name: payload.get(f"answered_{name}") for name in ("by", "via", "name")}
        asked, answer = self.questions.get(payload["question_id"]), {**payload, **by}
        if asked is None or asked.id not in self.answering:
            self.close(payload["question_id"], answer)
        else:  # it may be ours: its own reply says so
            asked.answer, self._refused = answer, self._refused | asked.refused(answer)

    def _grow(self, run_id: str, delta: Mapping[str, Any]) -> None:
        if run := self.work.runs.get(run_id):
            run.thinking = bool(delta.get("reasoning"))
        if not delta.get("reasoning"):
            self._saying(run_id, delta["node_id"]).append(delta)

    def _set(self, run_id: str, partial: Mapping[str, Any]) -> None:
        if not partial["node_id"].endswith(":say"):
            return
        if self._saying(run_id, partial["node_id"]).replace(partial):
            self._queue.append(_Item("note", (self.rows.note(self._messages("starts_over")),)))

    def _complete(self, run_id: str, summary: Mapping[str, Any]) -> None:
        if run := self.work.runs.get(run_id):
            run.tokens += sum(summary["usage"].values())
            run.thinking = False
        if summary["content"] or self._reply is not None:
            self._saying(run_id, summary["node_id"]).complete(summary["content"])
            self._close()

    def _saying(self, run_id: str, node_id: str) -> ReplyStream:
        if self._reply is None or self._reply.source != (run_id, node_id):
            self._close()
            self._reply = ReplyStream(run_id, node_id, self._glyphs)
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
        run = self.work.runs.get(run_id)
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
                if payload["call_id"] not in self._refused:  # else the answer's row has said it
                    self._add(_Item("row", call=(started, payload)))
            case _:
                pass

    def _heard(self, task_id: str, payload: Mapping[str, Any]) -> None:
        text = payload["task"]
        if text in self._own_words:
            self._own_words.remove(text)
        elif task_id not in self._own_tasks or payload.get("steer"):
            channel = payload["channel"]
            remark = self._messages("noted") if payload.get("steer") else ""
            self.put("you", self.rows.you(text, remark if channel == "cli" else channel))

    def _finish(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        answer = result["final_answer"]
        told = answer.strip() == self._last_said.strip() or len(answer) > MAX_COMPLETE_TEXT
        if answer and not told:
            self.again("assistant", answer)
        mark = self._glyphs.ok
        if error := result.get("error"):
            mark = self._glyphs.failed
            self.put("row", [self.rows.failed(error)])
        elif result["stop_reason"] == "max_iterations":
            self.put("note", [self.rows.note(self._messages("limit"))])
        for kept in result.get("attachments", ()):
            told_of = self._messages("files_kept", name=kept["name"], size=kept["size"])
            self.put("row", [self.rows.faint(f"{self._glyphs.artifact} {told_of}")])
        self.put("over", [self.rows.over(result, mark)])
        self._gone(event)

    def _cancelled(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        told = self._messages("stopped")
        if event["task_id"] not in self.stopped and result["requested_via"] != "cli":
            who = {"who": result["requested_by"], "via": result["requested_via"]}
            told = self._messages("stopped_by", **who)
        self.put("over", [self.rows.faint(f"{self._glyphs.stopped} {told}")])
        self._gone(event)

    def _gone(self, event: Mapping[str, Any]) -> None:
        self.work.end(event)
        self._last_said = ""
        for asked in [*self.questions.values()]:
            if asked.run_id == event["run_id"] and asked.id not in self.answering:
                del self.questions[asked.id]

    def _add(self, item: _Item) -> None:
        (self._queue if self._reply is None else self._held).append(item)

    def _printed(self, item: _Item, width: int) -> list[Fragments]:
        if item.reply is not None:
            return self._replied(item.reply, width, complete=True)[0]
        lines = item.lines
        if item.call is not None:
            lines = tuple(self.rows.tool(*item.call, width))
        rows = [row for line in lines for row in wrap_line(line, width)]
        return [*self._apart(item.kind), *rows]

    def _replied(
        self, reply: ReplyStream, width: int, *, complete: bool
    ) -> tuple[list[Fragments], list[Fragments]]:
        final, tail, starts = reply.render(width, complete=complete)
        if starts:
            final = [*self._apart("say"), *final]
        elif tail and not reply.started and self._last_kind not in {"", "row"}:
            tail = [(), *tail]
        return final, tail

    def _apart(self, kind: str) -> list[Fragments]:
        """Return a blank row where one is due: between people's words, work and what ends it."""
        last, self._last_kind = self._last_kind, kind
        close = (last == kind != "you") or {last, kind} == {"row", "say"}
        return [()] if last and not close else []
