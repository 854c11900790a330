"""Turns the events of a session into rows: printed ones, and live ones below them."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from internal.channels.cli.open_question import OpenQuestion
from internal.channels.cli.records import LOCAL_PRINCIPAL
from internal.channels.cli.render.event_rows import EventRows
from internal.channels.cli.render.question_panel import QuestionPanel
from internal.channels.cli.render.stream import MAX_COMPLETE_TEXT, StreamedReply
from internal.channels.cli.render.subtask_rows import SubtaskRows
from internal.channels.cli.render.text import Fragments, StyledLine, truncate_line, wrap_line
from internal.channels.cli.render.theme import Glyphs
from internal.channels.cli.repl.status_line import AWAITS_TASKS, RunActivity, RunState
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.quantities import format_duration
from internal.i18n.runs import RunMessages
from internal.normal_forms.untrusted_marks import without_marks

_MIN_THOUGHT_SECONDS = 0.1
_MAX_CHANGED = 5
"""Changed files of a run that are named; the others are counted."""


class RequestUsage(NamedTuple):
    """The tokens of a request to the model. `input` includes `cached`.

    `window` is the context window, including `reserved` tokens for the reply. `parts` are
    estimates for the parts of the request: kind, file name, tokens.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    window: int = 0
    reserved: int = 0
    parts: Sequence[tuple[str, str, int]] = ()

    @property
    def percent(self) -> int:
        """Used part of the context window, in percent."""
        return round(100 * self.input / self.window) if self.window else 0


@dataclass
class SessionCost:
    """Cost of a session in US dollars, without usage at unknown prices.

    It `is_old` if a run has ended since it was read.
    """

    dollars: float = 0.0
    is_old: bool = False


@dataclass(frozen=True)
class _Item:
    """Lines to print. A blank row separates items of different kinds."""

    kind: str
    lines: tuple[StyledLine, ...] = ()
    call: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    reply: StreamedReply | None = None


class TranscriptView:
    """Takes the events of one session in order.

    Text sent by this terminal is shown once, when it is sent. With `asks` open questions are left
    to the prompt, else they are printed.
    """

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs, *, asks: bool = False) -> None:
        self.runs = RunActivity()
        self.questions: dict[str, OpenQuestion] = {}
        """The open questions by id, oldest first."""
        self.answering: set[str] = set()
        """The ids of questions whose answer this terminal is sending."""
        self._refused: set[str] = set()
        self.plan: Mapping[str, Any] | None = None
        self.is_plan_over = False
        """True if the run of the plan has ended."""
        self._plan_run = ""
        self.output: tuple[str, str] | None = None
        """The name and output of the last tool."""
        self.thoughts = ""
        """The thoughts before the last reply, "" if there are none to read."""
        self.request = RequestUsage()
        """The last request of the session to the model."""
        self.last_answer = ""
        self.changes: list[str] = []
        """The diffs of the changed files, oldest first."""
        self.cost = SessionCost()
        self.ended_after = 0.0
        """Duration of an ended run in seconds, until its end has been handled."""
        self.waiting: dict[int, str] = {}
        """The messages to the run that it has not read, by number, oldest first."""
        self.given_back: dict[int, str] = {}
        """The messages of this terminal that were given back, until they are in the input again."""
        self.stopped: set[str] = set()
        """The ids of tasks that this terminal stopped."""
        self.key_page = ""
        """The address at which a key of a model is entered, "" if no page is served."""
        self.rows = EventRows(messages, glyphs)
        self.panel = QuestionPanel(messages, glyphs)
        self.subtasks = SubtaskRows(messages, glyphs)
        self.moved: dict[str, str] = {}
        """The instructions of the unfinished background tasks, by task id."""
        self._messages = messages
        self._run_messages = RunMessages(messages.language)
        self._glyphs = glyphs
        self._asks = asks
        self._queue: list[_Item] = []
        self._held: list[_Item] = []
        self._reply: StreamedReply | None = None
        self._last_reply = ""
        self._last_kind = ""
        self._thought_of: tuple[str, str] | None = None
        """The run and node of the newest reply whose thoughts have a row."""
        self._own_texts: list[str] = []
        self._own_tasks: set[str] = set()

    @property
    def current(self) -> RunState | None:
        """The running run, else the next queued one."""
        return self.runs.current

    def add_sent(self, text: str, remark: str = "") -> None:
        """Show text that this terminal sent."""
        self._own_texts.append(text)
        self.print_lines("you", self.rows.user_message(text, remark))

    def remove_sent(self, text: str) -> None:
        """Forget a text that the gateway refused."""
        if text in self._own_texts:
            self._own_texts.remove(text)

    def add_message(self, role: str, text: str, unwritten: str = "") -> None:
        """Show a message that was not streamed to this terminal."""
        if unwritten:
            self.print_lines("note", [self.rows.note(self._run_messages.unwritten(unwritten))])
            return
        if role == "user":
            self.print_lines("you", self.rows.user_message(text))
            return
        self.last_answer = text
        self._queue.append(_Item("say", reply=StreamedReply("", "", self._glyphs, text)))

    def reset(self) -> None:
        """Start over for another session; printed rows stay."""
        self.runs, self.plan, self.output, self.questions = RunActivity(), None, None, {}
        self._reply, self._held, self._own_texts = None, [], []
        self.waiting, self.given_back = {}, {}
        self.thoughts = ""
        self.subtasks, self.moved = SubtaskRows(self._messages, self._glyphs), {}
        self.request, self.last_answer, self.changes = RequestUsage(), "", []
        self.cost = SessionCost()

    def set_messages(self, messages: MessageCatalog) -> None:
        """Change the language."""
        self._messages, self.rows = messages, EventRows(messages, self._glyphs)
        self._run_messages = RunMessages(messages.language)
        self.panel = QuestionPanel(messages, self._glyphs)
        self.subtasks.set_messages(messages)

    def move_to_background(self, task_id: str, text: str) -> None:
        """Hide a task until it asks a question or ends."""
        self._close()
        self.moved[task_id] = text
        for run_id in [name for name, run in self.runs.runs.items() if run.task_id == task_id]:
            del self.runs.runs[run_id]

    def add_own_task(self, task_id: str) -> None:
        """Remember that the text of a task is already shown."""
        self._own_tasks.add(task_id)

    def is_own_task(self, task_id: str) -> bool:
        """Return True if a task was sent here."""
        return task_id in self._own_tasks

    def print_lines(self, kind: str, lines: Iterable[StyledLine]) -> None:
        """Print lines, after the reply that is being streamed."""
        self._add(_Item(kind, tuple(lines)))

    def open_question(self, view: Mapping[str, Any]) -> None:
        """Add an open question."""
        question = OpenQuestion(view)
        if self.questions.setdefault(question.id, question) is question and not self._asks:
            self.print_lines("row", self.panel.lines(question))

    def close_question(
        self, question_id: str, answer: Mapping[str, Any], *, here: bool = False
    ) -> None:
        """Print the answer of a question. `here`: this terminal gave it."""
        question = self.questions.pop(question_id, None)
        if question is not None:
            self._refused |= question.denied_calls(answer)
            self.print_lines("row", self.panel.closed(question, answer, here=here))

    def add_event(self, envelope: bytes) -> None:
        """Add an event, as JSON."""
        event = json.loads(envelope)
        payload, run_id = event["payload"], event["run_id"]
        if event.get("is_subtask") or event["task_id"] in self.moved:
            self._add_beside(event, payload)
            return
        match event["event"]:
            case "background.task.dispatched":
                self.subtasks.add_created(event)
            case "workflow.node.output.delta":
                self._append_delta(run_id, payload)
            case "partial":
                self._set(run_id, payload)
            case "workflow.node.output.summary":
                self._complete(run_id, payload)
            case "workflow.tool.started" | "workflow.tool.progress" | "workflow.tool.completed":
                self._tool(run_id, event["event"], payload)
            case "workflow.input.received":
                self._add_input(event["task_id"], payload)
            case "workflow.artifact.manifest":
                self._add_files(event["session_id"], payload)
            case "workflow.files.changed":
                self._add_changed(payload)
            case _:
                self._add_state_event(event, payload)

    def take_rows(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print now, and the live rows below them until the next call."""
        final: list[Fragments] = []
        for item in self._queue:
            final += self._render_item(item, width)
        self._queue = []
        tail: list[Fragments] = []
        if self._reply is not None:
            rows, tail = self._render_reply(self._reply, width, complete=False)
            final += rows
        for item in self._held:
            tail += [row for line in item.lines for row in wrap_line(line, width)]
        for line in self.subtasks.live(width):
            tail += wrap_line(line, width)
        return final, tail

    def _add_beside(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        """Add an event of a subtask or of a task in the background."""
        match event["event"]:
            case "workflow.question.asked" | "workflow.question.answered":
                self._question(event, payload)
            case "workflow.artifact.manifest":
                self._add_files(event["session_id"], payload)
            case "background.task.dispatched":
                self.subtasks.add_created(event)
            case "workflow.result.final" | "workflow.result.cancelled" as name:
                self._end_questions(event["run_id"])
                self.cost.is_old = True
                if event["task_id"] in self.moved:
                    text = self.moved.pop(event["task_id"])
                    result = payload if name == "workflow.result.final" else None
                    row = self.subtasks.moved_ended(event["task_id"], text, result)
                    self.print_lines("row", [row])
                elif row_of_end := self.subtasks.add_event(event):
                    self.print_lines("row", [row_of_end])
            case _ if event["task_id"] not in self.moved:
                self._count_tokens(event.get("correlation_id", ""), event["event"], payload)
                self.subtasks.add_event(event)
            case _:
                pass

    def _count_tokens(self, run_id: str, name: str, payload: Mapping[str, Any]) -> None:
        """Add the tokens of a reply to the count of its running outermost run."""
        if name == "workflow.node.output.summary" and (run := self.runs.runs.get(run_id)):
            run.tokens += sum(payload["usage"].values())

    def _add_state_event(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        match event["event"]:
            case "workflow.lifecycle.updated":
                awaits = payload.get("stop_reason") == AWAITS_TASKS
                if self.runs.update_status(event, AWAITS_TASKS if awaits else payload["status"]):
                    self.plan = None
            case "workflow.plan.updated":
                known = self.plan or {}
                self.plan, self._plan_run, self.is_plan_over = payload, event["run_id"], False
                if known.get("steps") is None or known.get("version") != payload["version"]:
                    self.print_lines("row", [self.rows.plan(payload)])
            case "workflow.node.retry":
                if run := self.runs.runs.get(event["run_id"]):
                    run.notice = self._run_messages.retry(payload, event.get("timestamp", ""))
            case "workflow.question.asked" | "workflow.question.answered":
                self._question(event, payload)
            case "workflow.result.final":
                self._finish(event, payload)
            case "workflow.result.cancelled":
                self._cancelled(event, payload)
            case name:
                self._add_notice(name, payload)

    def _add_notice(self, name: str, payload: Mapping[str, Any]) -> None:
        if name == "workflow.node.left_out":
            lost = payload["what"], payload["count"], payload.get("tool_name", "")
            self.print_lines("row", [self.rows.note(self._run_messages.left_out(*lost))])
        elif name == "workflow.input.waiting":
            self._add_waiting(payload["number"], payload["state"], payload["task"])
        elif name == "workflow.notice":
            self.print_lines("row", [self.rows.note(payload["text"])])

    def _add_waiting(self, number: int, state: str, text: str) -> None:
        """Record the outcome of a message that no model has read."""
        self.waiting.pop(number, None)
        if state in {"waiting", "edited"}:
            self.waiting[number] = text
        elif state == "given_back":
            self.add_given_back(text)
            if text in self._own_texts:
                self._own_texts.remove(text)
                self.given_back[number] = text

    def add_given_back(self, text: str) -> None:
        """Print that a message was not delivered."""
        self.print_lines("row", [self.rows.note(self._messages("given_back", text=text))])

    def _add_files(self, session_id: str, manifest: Mapping[str, Any]) -> None:
        """Print a row for each produced file: its size, and where it is or how to get it."""
        for file in manifest["artifacts"]:
            self.print_lines("row", [self.rows.produced_file(session_id, file)])
        if omitted := manifest.get("omitted"):
            self.print_lines(
                "row", [self.rows.note(self._messages("files_omitted", count=omitted))]
            )

    def _add_changed(self, changed: Mapping[str, Any]) -> None:
        """Print the first files of the workspace that a run changed."""
        names = [one["path"] for one in changed["files"][:_MAX_CHANGED]]
        more = changed["total"] - len(names)
        key = "changed_files_more" if more else "changed_files"
        text = self._messages(key, names=", ".join(names), count=more)
        self.print_lines("row", [self.rows.note(text)])

    def _question(self, event: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        if event["event"] == "workflow.question.asked":
            self.open_question({**payload, "run_id": event["run_id"]})
            return
        by = {name: payload.get(f"answered_{name}") for name in ("by", "via", "name")}
        question, answer = self.questions.get(payload["question_id"]), {**payload, **by}
        if question is None or question.id not in self.answering:
            self.close_question(payload["question_id"], answer)
        else:  # it may be ours: its own reply says so
            question.answer, self._refused = answer, self._refused | question.denied_calls(answer)

    def _append_delta(self, run_id: str, delta: Mapping[str, Any]) -> None:
        is_thought = bool(delta.get("reasoning"))
        if run := self.runs.runs.get(run_id):
            if is_thought and not run.thinking:
                run.thinking_since = time.monotonic()
            elif run.thinking and not is_thought:
                # the row comes before the reply, and its summary after it
                seconds = time.monotonic() - run.thinking_since
                self._add_thought(run_id, delta["node_id"], seconds)
            run.thinking, run.notice = is_thought, ""
        if not is_thought:
            self._reply_of(run_id, delta["node_id"]).append(delta)

    def _add_thought(self, run_id: str, node_id: str, seconds: float) -> None:
        """Print for how long the model thought before a reply, once for each reply."""
        if self._thought_of == (run_id, node_id):
            return
        self._thought_of = (run_id, node_id)
        took = format_duration(max(seconds, _MIN_THOUGHT_SECONDS))
        row = _Item("row", (self.rows.note(self._run_messages("thought", time=took)),))
        # after a reply that has begun to be printed, which only one joined halfway has
        is_late = self._reply is not None and self._reply.started
        (self._held if is_late else self._queue).append(row)

    def _set(self, run_id: str, partial: Mapping[str, Any]) -> None:
        if not partial["node_id"].endswith(":say"):
            return
        if self._reply_of(run_id, partial["node_id"]).replace(partial):
            self._queue.append(_Item("note", (self.rows.note(self._run_messages("starts_over")),)))

    def _complete(self, run_id: str, summary: Mapping[str, Any]) -> None:
        self._count_tokens(run_id, "workflow.node.output.summary", summary)
        if run := self.runs.runs.get(run_id):
            run.thinking, run.notice = False, ""
        self.thoughts = summary.get("thinking", "")
        if self.thoughts:
            self._add_thought(run_id, summary["node_id"], summary["thinking_ms"] / 1000)
        usage = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0} | {
            name.removesuffix("_tokens"): count for name, count in summary["usage"].items()
        }
        sent = usage["input"] + usage["cache_read"] + usage["cache_write"]
        held = summary.get("context", {"window": 0, "reserved": 0, "parts": []})
        parts = [(part["kind"], part.get("name", ""), part["tokens"]) for part in held["parts"]]
        self.request = RequestUsage(
            sent or sum(tokens for _, _, tokens in parts),
            usage["cache_read"],
            usage["output"],
            held["window"],
            held["reserved"],
            parts,
        )
        if summary["content"] or self._reply is not None:
            self._reply_of(run_id, summary["node_id"]).complete(summary["content"])
            self._close()

    def _reply_of(self, run_id: str, node_id: str) -> StreamedReply:
        if self._reply is None or self._reply.source != (run_id, node_id):
            self._close()
            self._reply = StreamedReply(run_id, node_id, self._glyphs)
        return self._reply

    def _close(self) -> None:
        """Complete the streamed reply, then print the output that was held back for it."""
        if self._reply is not None:
            self._last_reply = self._reply.text
            self._queue.append(_Item("say", reply=self._reply))
            self._reply = None
        self._queue += self._held
        self._held = []

    def _tool(self, run_id: str, name: str, payload: Mapping[str, Any]) -> None:
        run = self.runs.runs.get(run_id)
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
                self.output = (tool_label(payload["tool_name"]), without_marks(text))
                if isinstance(diff := payload.get("metadata", {}).get("diff"), str):
                    self.changes.append(diff)
                if payload["call_id"] not in self._refused:  # else the answer's row has said it
                    self._add(_Item("row", call=(started, payload)))
            case _:
                pass

    def _add_input(self, task_id: str, payload: Mapping[str, Any]) -> None:
        if payload.get("resumed"):
            self.print_lines("note", [self.rows.note(self._run_messages.unwritten("resumed"))])
            return
        text = payload["task"]
        read = next((number for number, each in self.waiting.items() if each == text), None)
        if payload.get("steer") and read is not None:
            del self.waiting[read]
        if text in self._own_texts:
            self._own_texts.remove(text)
        elif task_id not in self._own_tasks or payload.get("steer"):
            for ran in payload.get("commands", ()):
                self.print_lines("row", [self.rows.own_command(ran)])
            channel = payload["channel"]
            remark = self._messages("noted") if payload.get("steer") else ""
            self.print_lines(
                "you", self.rows.user_message(text, remark if channel == "cli" else channel)
            )

    def _finish(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        self.waiting.clear()  # what it has not read is the next task now
        self.ended_after = result["duration_ms"] / 1000
        answer = result["final_answer"]
        self.last_answer = answer or self.last_answer
        is_shown = answer.strip() == self._last_reply.strip() or len(answer) > MAX_COMPLETE_TEXT
        if answer and not is_shown:
            self.add_message("assistant", answer)
        mark = self._glyphs.ok
        reason, code = result["stop_reason"], result.get("error_code", "")
        sentence = self._run_messages.ended(reason, code)
        if error := result.get("error"):
            is_limit = self._run_messages.is_limit(reason)
            mark = self._glyphs.note if is_limit else self._glyphs.failed
            row = self.rows.limit if is_limit else self.rows.failed
            self.print_lines("row", [row(sentence)])
            if details := self._run_messages.details(reason, code, error):
                self.print_lines("row", [self.rows.faint(f"  {truncate_line(details, 2_000)}")])
            if hint := self._run_messages.key_hint(code, self.key_page):
                self.print_lines("row", [self.rows.note(hint)])
        elif self._run_messages.is_limit(reason):
            mark = self._glyphs.note
            self.print_lines("note", [self.rows.limit(sentence)])
        elif sentence:
            self.print_lines("note", [self.rows.note(sentence)])
        if first := result.get("instead_of"):
            said = self._run_messages.answered_by(result["model"], first)
            self.print_lines("note", [self.rows.note(said)])
        for file in result.get("attachments", ()):
            label = self._messages("files_kept", name=file["name"], size=file["size"])
            self.print_lines("row", [self.rows.faint(f"{self._glyphs.artifact} {label}")])
        if mark == self._glyphs.ok and result.get("calls_not_run"):
            mark = self._glyphs.permission
        self.print_lines("over", [self.rows.result(result, mark)])
        self._end_run(event)

    def _cancelled(self, event: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._close()
        text = self._messages("stopped")
        if event["task_id"] not in self.stopped and result["requested_via"] != "cli":
            by = result["requested_by"]
            who = {
                "who": self._messages("you")
                if by == LOCAL_PRINCIPAL
                else result.get("requested_name") or by,
                "via": result["requested_via"],
            }
            text = self._messages("stopped_by", **who)
        mark = f"{self._glyphs.stopped} {text}"
        has_run = result.get("duration_ms", 0) > 0
        row = self.rows.result(result, f"{mark} ·") if has_run else self.rows.faint(mark)
        self.print_lines("over", [row])
        self._end_run(event)

    def _end_run(self, event: Mapping[str, Any]) -> None:
        self.runs.end(event)
        self.cost.is_old = True
        self.is_plan_over |= event["run_id"] == self._plan_run
        self._last_reply = ""
        self._end_questions(event["run_id"])

    def _end_questions(self, run_id: str) -> None:
        for question in [*self.questions.values()]:
            if question.run_id == run_id and question.id not in self.answering:
                del self.questions[question.id]

    def _add(self, item: _Item) -> None:
        (self._queue if self._reply is None else self._held).append(item)

    def _render_item(self, item: _Item, width: int) -> list[Fragments]:
        if item.reply is not None:
            return self._render_reply(item.reply, width, complete=True)[0]
        lines = item.lines
        if item.call is not None:
            lines = tuple(self.rows.tool(*item.call, width))
        rows = [row for line in lines for row in wrap_line(line, width)]
        return [*self._separator(item.kind), *rows]

    def _render_reply(
        self, reply: StreamedReply, width: int, *, complete: bool
    ) -> tuple[list[Fragments], list[Fragments]]:
        final, tail, starts = reply.render(width, complete=complete)
        if starts:
            final = [*self._separator("say"), *final]
        elif tail and not reply.started and self._last_kind not in {"", "row"}:
            tail = [(), *tail]
        return final, tail

    def _separator(self, kind: str) -> list[Fragments]:
        """Return the blank row that separates messages, tool rows and results, if it is due."""
        last, self._last_kind = self._last_kind, kind
        close = (last == kind != "you") or {last, kind} == {"row", "say"}
        return [()] if last and not close else []
