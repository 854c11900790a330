"""The prompt: the question above the input, and answers from keys and text."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from prompt_toolkit.buffer import Buffer

from internal.channels.cli.client import GatewayError
from internal.channels.cli.render.text import Fragments, StyledLine, truncate_line
from internal.channels.cli.repl.open_question import ENTER, AnswerJson, OpenQuestion
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.session import ReplSession

ARMING_SECONDS = 0.3
"""The keys of a question work once it has been visible this long, so that keys that were typed for
something else do not answer it."""

QUESTIONS_POLL_SECONDS = 30
"""How often the open questions of other sessions are counted, in seconds."""

_MAX_QUESTIONS = 100
_MAX_DECISION_LENGTH = 200
"""A longer text is no decision on calls."""


class Prompt:
    """Shows the oldest open question and turns keys and text into answers."""

    def __init__(self, session: ReplSession, box: Buffer) -> None:
        self.session = session
        self._box = box
        self._seen = ("", 0.0)
        """The id of the visible question, and since when it is visible."""
        self._writing = ""
        """The id of the question that the input is an answer to."""
        self._rows: list[Fragments] = []
        self._drawn_for: tuple[object, ...] = ()
        self._open: list[str] = []
        """The sessions of the open questions that were found last, and for which session."""
        self._looked_for: str | None = ""

    @property
    def asked(self) -> OpenQuestion | None:
        """The question that keys and text answer now."""
        view = self.session.view
        left = (one for one in view.questions.values() if one.id not in view.answering)
        return next(left, None)

    @property
    def writing(self) -> bool:
        """True while the input is part of an answer."""
        return self.asked is not None and bool(self.asked.drafting)

    # for the screen

    def take_rows(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print for good, and the live rows below them."""
        return self.session.take_rows(width)

    def status(self) -> tuple[Fragments, str]:
        """Return the status line and the hint at its end."""
        asked, messages = self.asked, self.session.messages
        if asked is None:
            return self.session.status()
        more = len(self.session.view.questions) - 1
        told = messages("asks_one_of", count=more) if more else messages("asks_here")
        hint = messages("hint_words") if self._alone(asked) else messages("hint_calls")
        if asked.drafting:
            hint = messages("hint_writing")
        glyph = self.session.view.rows.glyphs.permission
        return self.session.status((("class:need", f"{glyph} {told}"),), hint)

    def panel(self, width: int, room: int) -> list[Fragments]:
        """Return the rows of the question, at most `room`, and a row about other sessions."""
        self._watch_others()
        asked, others = self.asked, self._others(width) if room > 1 else []
        if self._writing and (asked is None or asked.id != self._writing):
            self._writing = ""
            self._box.reset()  # answered elsewhere: the draft is obsolete
        if asked is None:
            return others
        rows = self._drawn(asked, width, room - len(others))
        self._see(asked.id if rows else "")
        return [*others, *rows]

    def mark(self) -> Fragments:
        """Return the prompt before the input."""
        style = "class:accent" if self.asked is None else "class:need"
        return ((style, f"{self.session.view.rows.glyphs.prompt} "),)

    # for the keys

    def means(self, key: str) -> bool:
        """Return True if a key answers the question now, or part of it."""
        asked = self.asked
        return asked is not None and key in asked.keys and self._armed(asked)

    def press(self, key: str) -> None:
        """Handle a key of the question."""
        asked = self.asked
        if asked is None:
            return
        came = asked.press(key)
        if isinstance(came, str):
            self._writing = asked.id
            self._box.insert_text(came)
        elif came is not None:
            self._answer(asked, came, "")
        self.session.redraw()

    def enter(self) -> None:
        """Confirm the selection."""
        asked = self.asked
        if asked is not None and asked.selected and not asked.drafting:
            self.press(ENTER)

    def takes(self, text: str) -> bool:
        """Answer with the text of the input. Return False if it is no answer."""
        asked, services = self.asked, self.session.services
        if asked is None or services is None or not (asked.drafting or self._armed(asked)):
            return False
        if len(text) == 1 and self.means(text):
            self.press(text)
            return True
        words = self.session.pastes.expand(text)
        if asked.drafting:
            given: AnswerJson | None = asked.answer_from(words, services.read_steps)
        else:
            given = self._understood(asked, words, services)
        if given is None:
            return False
        self._answer(asked, given, text)
        return True

    def back(self) -> bool:
        """Discard the draft of an answer. Return False if there is none."""
        asked = self.asked
        if asked is None or not asked.drafting:
            return False
        asked.drafting = self._writing = ""
        self._box.reset()
        self.session.redraw()
        return True

    def whole(self) -> Sequence[StyledLine]:
        """Return the whole open question, () if there is none."""
        asked = self.asked
        return () if asked is None else self.session.view.panel.lines(asked)

    async def look(self) -> None:
        """Load the open questions of all sessions."""
        with suppress(GatewayError):  # the gateway is unreachable: keep what is known
            found = await (await self.session.ready()).client.questions(
                "open", None, _MAX_QUESTIONS
            )
            self._open = [one.session_id for one in found]
        self.session.redraw()

    def _watch_others(self) -> None:
        """Load the open questions again after a change of the session."""
        if self._looked_for != self.session.session_id:
            self._looked_for = self.session.session_id
            self.session.start(self.look())

    def _drawn(self, asked: OpenQuestion, width: int, room: int) -> list[Fragments]:
        """Return the rows of the question, rendered again only after a change."""
        armed, marked = self._armed(asked), tuple(sorted(asked.selected))
        now = (asked.id, asked.drafting, marked, width, room, armed)
        if now != self._drawn_for:
            panel = self.session.view.panel
            self._rows = panel.rows(asked, width, room, armed=armed)
            self._drawn_for = now
        return self._rows

    def _others(self, width: int) -> list[Fragments]:
        count = sum(one != self.session.session_id for one in self._open)
        if not count:
            return []
        name = "elsewhere_one" if count == 1 else "elsewhere"
        told = truncate_line(self.session.messages(name, count=count), width)
        return [(("class:faint", told),)]

    def _alone(self, asked: OpenQuestion) -> bool:
        """Return True if any text answers it: only while no other question is open here."""
        return asked.accepts_text and len(self.session.view.questions) == 1

    def _understood(
        self, asked: OpenQuestion, words: str, services: ReplServices
    ) -> AnswerJson | None:
        """Return the answer that a text is, or None. Calls accept decision words only."""
        if len(self.session.view.questions) > 1 or not (
            asked.accepts_text or len(words) < _MAX_DECISION_LENGTH
        ):
            return None
        try:
            given = services.decide(asked.view, words)
        except ValueError:
            return {"decision": "text", "text": words}  # the client says what is wrong with it
        free = not asked.accepts_text and given["decision"] == "text"
        return None if free else given

    def _answer(self, asked: OpenQuestion, given: AnswerJson, text: str) -> None:
        self.session.view.answering.add(asked.id)
        self.session.start(self._send(asked, given, text))

    async def _send(self, asked: OpenQuestion, given: AnswerJson, text: str) -> None:
        session, client = self.session, (await self.session.ready()).client
        try:
            answered = await client.answer(asked.id, given)
        except GatewayError:
            await self._look_at(asked)
            if asked.id in session.view.questions:
                session.restore_input(text)
            raise
        else:
            session.view.close_question(asked.id, answered.view["answer"], here=True)
        finally:
            session.view.answering.discard(asked.id)
        await self.look()

    async def _look_at(self, asked: OpenQuestion) -> None:
        """Show the answer if someone else answered first."""
        with suppress(GatewayError):
            answer = asked.answer
            if answer is None:
                found = await (await self.session.ready()).client.question(asked.id)
                gone = None if found.status == "open" else {"decision": "expired"}
                answer = found.view["answer"] or gone
            if answer is not None:
                self.session.view.close_question(asked.id, answer)

    def _see(self, question_id: str) -> None:
        if question_id != self._seen[0]:
            self._seen = (question_id, time.monotonic())
            if question_id:
                later = asyncio.get_running_loop().call_later
                later(ARMING_SECONDS + 0.01, self.session.redraw)

    def _armed(self, asked: OpenQuestion) -> bool:
        seen, since = self._seen
        return seen == asked.id and time.monotonic() - since >= ARMING_SECONDS
