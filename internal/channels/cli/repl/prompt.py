"""The prompt: the question above the input, and answers from keys and text."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completion

from internal.channels.cli.client import GatewayError
from internal.channels.cli.open_question import ENTER, AnswerJson, OpenQuestion
from internal.channels.cli.render.text import Fragments, StyledLine, truncate_line
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.session import ReplSession

ARMING_SECONDS = 0.3
"""The keys of a question work once it has been visible this long, so that keys that were typed for
something else do not answer it."""

QUESTIONS_POLL_SECONDS = 30
"""Interval between counts of the open questions of other sessions, in seconds."""

_MAX_QUESTIONS = 100
_WRITTEN_EARLIER = "written_earlier"
"""The code of a refused answer: its text was written before the question was asked."""
_MAX_QUEUED = 3
"""At most this many rows show queued messages."""


class Prompt:
    """Shows the oldest open question and turns keys and text into answers."""

    def __init__(self, session: ReplSession, box: Buffer) -> None:
        self.session = session
        self._box = box
        box.on_text_changed += self._note_text
        self._visible = ("", 0.0)
        """The id of the visible question, and since when it is visible."""
        self._draft_id = ""
        """The id of the question that the input is an answer to."""
        self._picked = ""
        """The command whose value is chosen from a list."""
        self._rows: list[Fragments] = []
        self._rendered_for: tuple[object, ...] = ()
        self._open: list[str] = []
        """The sessions of the open questions that were found last, and for which session."""
        self._loaded_for: str | None = ""

    @property
    def question(self) -> OpenQuestion | None:
        """The question that keys and text answer now."""
        view = self.session.view
        left = (each for each in view.questions.values() if each.id not in view.answering)
        return next(left, None)

    @property
    def is_drafting(self) -> bool:
        """True while the input is part of an answer."""
        return self.question is not None and bool(self.question.drafting)

    @property
    def is_picking(self) -> bool:
        """True while the input filters a list of values; Enter takes the first one."""
        if self._picked and not self._box.text.startswith(self._picked):
            self._picked = ""
        return bool(self._picked)

    def pick(self, name: str) -> None:
        """Offer a choice of values of a command, unless the input changes meanwhile."""
        if not self._box.text:
            self._picked = f"/{name} "
            self._box.insert_text(self._picked)
            self._box.start_completion()

    def offered(self) -> Iterable[Completion]:
        """Return the completions of the input."""
        document, completer = self._box.document, self._box.completer
        return completer.get_completions(document, CompleteEvent())

    # for the screen

    def take_rows(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print permanently, and the live rows below them."""
        return self.session.take_rows(width)

    def status(self) -> tuple[Fragments, str]:
        """Return the status line and the hint at its end."""
        question, messages = self.question, self.session.messages
        if question is None:
            return self.session.status()
        more = len(self.session.view.questions) - 1
        label = messages("asks_one_of", count=more) if more else messages("asks_here")
        hint = messages("hint_writing" if question.drafting else "hint_words")
        glyph = self.session.view.rows.glyphs.permission
        return self.session.status((("class:need", f"{glyph} {label}"),), hint)

    def panel(self, width: int, max_rows: int) -> list[Fragments]:
        """Return the rows of the question, at most `max_rows`, and a row about other sessions."""
        self._reload_after_change()
        others = [*self._others(width), *self._queued(width)] if max_rows > _MAX_QUEUED + 1 else []
        question = self.question
        if self._draft_id and (question is None or question.id != self._draft_id):
            self._draft_id = ""
            self._box.reset()  # answered elsewhere: the draft is obsolete
        if question is None:
            return others
        rows = self._question_rows(question, width, max_rows - len(others))
        self._mark_visible(question.id if rows else "")
        return [*others, *rows]

    def mark(self) -> Fragments:
        """Return the prompt before the input."""
        style = "class:accent" if self.question is None else "class:need"
        return ((style, f"{self.session.view.rows.glyphs.prompt} "),)

    # for the keys

    def accepts_key(self, key: str) -> bool:
        """Return True if a key answers the question now, or part of it."""
        question = self.question
        return question is not None and key in question.keys and self._armed(question)

    def press(self, key: str, seen: str = "") -> None:
        """Handle a key of the question; `seen` is the visible content when it was typed as text."""
        question = self.question
        if question is None:
            return
        result = question.press(key)
        if isinstance(result, str):
            self._draft_id = question.id
            self._box.insert_text(result)
        elif result is not None:
            self._answer(question, _with_seen(result, seen), key if seen else "")
        self.session.redraw()

    def confirm(self) -> None:
        """Confirm the selection."""
        question = self.question
        if question is not None and question.selected and not question.drafting:
            self.press(ENTER)

    def submit(self, text: str) -> bool:
        """Answer with the text of the input. Return False if no question is shown."""
        question, services = self.question, self.session.services
        if question is None or services is None or not (question.drafting or self._armed(question)):
            return False
        if len(text) == 1 and self.accepts_key(text):
            self.press(text, self.session.written)
            return True
        expanded = self.session.pastes.expand(text)
        if question.drafting:
            answer_json = question.answer_from(expanded, services.read_steps)
        else:
            answer_json = _parse_text(question, expanded, services)
            answer_json = _with_seen(answer_json, self.session.written)
        self._answer(question, answer_json, text)
        return True

    def discard_draft(self) -> bool:
        """Discard the draft of an answer. Return False if there is none."""
        question = self.question
        if question is None or not question.drafting:
            return False
        question.drafting = self._draft_id = ""
        self._box.reset()
        self.session.redraw()
        return True

    def question_lines(self) -> Sequence[StyledLine]:
        """Return the whole open question, () if there is none."""
        question = self.question
        return () if question is None else self.session.view.panel.lines(question)

    async def load_questions(self) -> None:
        """Load the open questions of all sessions."""
        with suppress(GatewayError):  # the gateway is unreachable: keep what is known
            found = await (await self.session.ready()).client.questions(
                "open", None, _MAX_QUESTIONS
            )
            self._open = [one.session_id for one in found]
        self.session.redraw()

    def _reload_after_change(self) -> None:
        """Load the open questions again after a change of the session."""
        if self._loaded_for != self.session.session_id:
            self._loaded_for = self.session.session_id
            self.session.start(self.load_questions())

    def _question_rows(self, question: OpenQuestion, width: int, max_rows: int) -> list[Fragments]:
        """Return the rows of the question, rendered again only after a change."""
        armed, selected = self._armed(question), tuple(sorted(question.selected))
        state = (question.id, question.drafting, selected, width, max_rows, armed)
        if state != self._rendered_for:
            panel = self.session.view.panel
            self._rows = panel.rows(question, width, max_rows, armed=armed)
            self._rendered_for = state
        return self._rows

    def _others(self, width: int) -> list[Fragments]:
        count = sum(one != self.session.session_id for one in self._open)
        if not count:
            return []
        name = "elsewhere_one" if count == 1 else "elsewhere"
        label = truncate_line(self.session.messages(name, count=count), width)
        return [(("class:faint", label),)]

    def _queued(self, width: int) -> list[Fragments]:
        """Return the queued messages, a row each."""
        glyph, queue = self.session.view.rows.glyphs.noted, [*self.session.queue]
        shown = [truncate_line(f"{glyph} {' '.join(one.split())}", width) for one in queue]
        if len(shown) > _MAX_QUEUED:
            more = self.session.messages("more_lines", count=len(shown) - _MAX_QUEUED + 1)
            shown[_MAX_QUEUED - 1 :] = [f"  {more}"]
        return [(("class:faint", one),) for one in shown]

    def _answer(self, question: OpenQuestion, answer_json: AnswerJson, text: str) -> None:
        self.session.view.answering.add(question.id)
        self.session.start(self._send(question, answer_json, text))

    async def _send(self, question: OpenQuestion, answer_json: AnswerJson, text: str) -> None:
        session, client = self.session, (await self.session.ready()).client
        try:
            answered = await client.answer(question.id, answer_json)
        except GatewayError as error:
            await self._show_answer(question)
            if question.id in session.view.questions:
                session.restore_input(text)
                if error.reason == _WRITTEN_EARLIER:
                    sentence = session.messages("written_before_question")
                    raise GatewayError(error.code, sentence) from None
            raise
        else:
            session.view.close_question(question.id, answered.view["answer"], here=True)
        finally:
            session.view.answering.discard(question.id)
        await self.load_questions()

    async def _show_answer(self, question: OpenQuestion) -> None:
        """Show the answer if someone else answered first."""
        with suppress(GatewayError):
            answer = question.answer
            if answer is None:
                found = await (await self.session.ready()).client.question(question.id)
                gone = None if found.status == "open" else {"decision": "expired"}
                answer = found.view["answer"] or gone
            if answer is not None:
                self.session.view.close_question(question.id, answer)

    def _note_text(self, box: Buffer) -> None:
        """Record the visible content while the input changes; sending clears the input."""
        if box.text:
            self.session.written = self.session.seen

    def _mark_visible(self, question_id: str) -> None:
        if question_id != self._visible[0]:
            self._visible = (question_id, time.monotonic())
            if question_id:
                later = asyncio.get_running_loop().call_later
                later(ARMING_SECONDS + 0.01, self.session.redraw)

    def _armed(self, question: OpenQuestion) -> bool:
        visible, since = self._visible
        return visible == question.id and time.monotonic() - since >= ARMING_SECONDS


def _with_seen(answer_json: AnswerJson, seen: str) -> AnswerJson:
    """Return an answer with the id of the newest event at the time it was written."""
    return {**answer_json, "seen": seen} if seen else answer_json


def _parse_text(question: OpenQuestion, text: str, services: ReplServices) -> AnswerJson:
    """Return the answer that a text is; other words about calls reject them with that reason."""
    try:
        return services.decide(question.view, text)
    except ValueError:
        return {"decision": "text", "text": text}  # the client says what is wrong with it
