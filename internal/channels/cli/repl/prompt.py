"""The prompt: the box for a person's words, and the question that waits for them above it."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from prompt_toolkit.buffer import Buffer

from internal.channels.cli.client import GatewayError
from internal.channels.cli.render.text import Fragments, StyledLine, truncate_line
from internal.channels.cli.repl.dependencies import ReplServices
from internal.channels.cli.repl.open_question import ENTER, AnswerJson, OpenQuestion
from internal.channels.cli.repl.session import ReplSession

ARMING_SECONDS = 0.3
"""A question's keys mean something once it has stood there for this long: fingers that were under
way when it came do not answer it."""

QUESTIONS_POLL_SECONDS = 30
"""How often the open questions of other sessions are counted."""

_MANY = 100
_SHORT = 200
"""Words that say yes or no to calls, and why, have fewer characters."""


class Prompt:
    """Shows the question that waits longest, and makes answers of keys and words."""

    def __init__(self, session: ReplSession, box: Buffer) -> None:
        self.session = session
        self._box = box
        self._seen = ("", 0.0)
        """The question that is on the screen, and since when."""
        self._writing = ""
        """The question for which the box is used."""
        self._rows: list[Fragments] = []
        self._drawn_for: tuple[object, ...] = ()
        self._open: list[str] = []
        """The sessions of open questions, as they were last looked at, and for which session."""
        self._looked_for: str | None = ""

    @property
    def asked(self) -> OpenQuestion | None:
        """The question to be answered here now."""
        view = self.session.view
        left = (one for one in view.questions.values() if one.id not in view.answering)
        return next(left, None)

    @property
    def writing(self) -> bool:
        """Say whether the box is used for a part of an answer."""
        return self.asked is not None and bool(self.asked.writing)

    # what the screen asks

    def print(self, width: int) -> tuple[list[Fragments], list[Fragments]]:
        """Return the rows to print above now, and those below that still move."""
        return self.session.print(width)

    def status(self) -> tuple[Fragments, str]:
        """Return the line of status and the hint at its end."""
        asked, messages = self.asked, self.session.messages
        if asked is None:
            return self.session.status()
        more = len(self.session.view.questions) - 1
        told = messages("asks_one_of", count=more) if more else messages("asks_here")
        hint = messages("hint_words") if self._alone(asked) else messages("hint_calls")
        if asked.writing:
            hint = messages("hint_writing")
        glyph = self.session.view.rows.glyphs.permission
        return self.session.status((("class:need", f"{glyph} {told}"),), hint)

    def panel(self, width: int, room: int) -> list[Fragments]:
        """Return the rows of the question in at most `room`, and one about other sessions."""
        self._watch_others()
        asked, others = self.asked, self._others(width) if room > 1 else []
        if self._writing and (asked is None or asked.id != self._writing):
            self._writing = ""
            self._box.reset()  # it is answered elsewhere: what stood there has no meaning now
        if asked is None:
            return others
        rows = self._drawn(asked, width, room - len(others))
        self._see(asked.id if rows else "")
        return [*others, *rows]

    def mark(self) -> Fragments:
        """Return what stands before the box."""
        style = "class:accent" if self.asked is None else "class:need"
        return ((style, f"{self.session.view.rows.glyphs.prompt} "),)

    # what keys do

    def means(self, key: str) -> bool:
        """Say whether a key is an answer now, or a part of one."""
        asked = self.asked
        return asked is not None and key in asked.keys and self._armed(asked)

    def press(self, key: str) -> None:
        """Take a key that means something."""
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
        """Take what is marked."""
        asked = self.asked
        if asked is not None and asked.marked and not asked.writing:
            self.press(ENTER)

    def takes(self, text: str) -> bool:
        """Take words from the box that are an answer; False when they are none."""
        asked, services = self.asked, self.session.services
        if asked is None or services is None or not (asked.writing or self._armed(asked)):
            return False
        if len(text) == 1 and self.means(text):
            self.press(text)
            return True
        words = self.session.chips.whole(text)
        if asked.writing:
            given: AnswerJson | None = asked.written(words, services.read_steps)
        else:
            given = self._understood(asked, words, services)
        if given is None:
            return False
        self._answer(asked, given, text)
        return True

    def back(self) -> bool:
        """Leave what is being written for a question; False when nothing is."""
        asked = self.asked
        if asked is None or not asked.writing:
            return False
        asked.writing = self._writing = ""
        self._box.reset()
        self.session.redraw()
        return True

    def whole(self) -> Sequence[StyledLine]:
        """Return all of the question that waits, () without one."""
        asked = self.asked
        return () if asked is None else self.session.view.panel.lines(asked)

    async def look(self) -> None:
        """Look for the open questions of all sessions."""
        with suppress(GatewayError):  # the gateway is away: what was known stays
            found = await (await self.session.ready()).client.questions("open", None, _MANY)
            self._open = [one.session_id for one in found]
        self.session.redraw()

    def _watch_others(self) -> None:
        """Look again when the person has gone to another session."""
        if self._looked_for != self.session.session_id:
            self._looked_for = self.session.session_id
            self.session.start(self.look())

    def _drawn(self, asked: OpenQuestion, width: int, room: int) -> list[Fragments]:
        """Return its rows; drawn anew only when something about them has changed."""
        armed, marked = self._armed(asked), tuple(sorted(asked.marked))
        now = (asked.id, asked.writing, marked, width, room, armed)
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
        """Say whether any words are an answer: they are when no other question is open here."""
        return asked.takes_words and len(self.session.view.questions) == 1

    def _understood(
        self, asked: OpenQuestion, words: str, services: ReplServices
    ) -> AnswerJson | None:
        """Return the answer that words are; calls take the exact words alone."""
        if len(self.session.view.questions) > 1 or not (asked.takes_words or len(words) < _SHORT):
            return None
        try:
            given = services.decide(asked.view, words)
        except ValueError:
            return {"decision": "text", "text": words}  # the client says what is wrong with it
        free = not asked.takes_words and given["decision"] == "text"
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
                session.put_back(text)
            raise
        else:
            session.view.close(asked.id, answered.view["answer"], here=True)
        finally:
            session.view.answering.discard(asked.id)
        await self.look()

    async def _look_at(self, asked: OpenQuestion) -> None:
        """See whether somebody else was first."""
        with suppress(GatewayError):
            answer = asked.answer
            if answer is None:
                found = await (await self.session.ready()).client.question(asked.id)
                gone = None if found.status == "open" else {"decision": "expired"}
                answer = found.view["answer"] or gone
            if answer is not None:
                self.session.view.close(asked.id, answer)

    def _see(self, question_id: str) -> None:
        if question_id != self._seen[0]:
            self._seen = (question_id, time.monotonic())
            if question_id:
                later = asyncio.get_running_loop().call_later
                later(ARMING_SECONDS + 0.01, self.session.redraw)

    def _armed(self, asked: OpenQuestion) -> bool:
        seen, since = self._seen
        return seen == asked.id and time.monotonic() - since >= ARMING_SECONDS
