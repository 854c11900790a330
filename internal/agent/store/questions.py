"""Questions and plans in tables."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Audience, Question
from internal.agent.domain.tasks import grants_place
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import to_json

QuestionStatus = Literal["open", "answered", "expired", "closed"]


class QuestionRecord(NamedTuple):
    """What is stored of a question when it is asked.

    `principal` gave the task, `chat` is where it was given ("" for none), `who` may answer.
    Instants are RFC 3339.
    """

    question: Question
    run_id: RunId
    task_id: TaskId
    session_id: SessionId
    principal: str
    chat: str
    who: Audience
    asked: str
    expires: str

    @property
    def place(self) -> str:
        """The name under which rules are kept that hold for all tasks of where it was asked."""
        return grants_place(self.chat, self.principal)


class StoredQuestion(NamedTuple):
    """A stored question and its state."""

    asked: QuestionRecord
    status: QuestionStatus
    answer: Answer | None

    @property
    def question(self) -> Question:
        """The question."""
        return self.asked.question


_question = msgspec.json.Decoder(Question)
_answer = msgspec.json.Decoder(Answer)


class QuestionStore:
    """Fills `Questions`. A question is open, then answered, expired or closed (its run ended)."""

    def ask(self, asked: QuestionRecord, /) -> Write[None]:
        """Store an open question. A replayed Turn asks again: what is stored stays as it is."""
        yield Statement("insert_question", (asked.question.id, *asked[1:], to_json(asked.question)))

    def get(self, question_id: QuestionId, /) -> Read[StoredQuestion | None]:
        """Return a question."""
        rows = yield Statement("question", (question_id,))
        return _stored(rows[0]) if rows else None

    def page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: QuestionStatus | None,
        before: str | None,
        limit: int,
    ) -> Read[list[StoredQuestion]]:
        """Return questions, newest first, behind the question `before`; None: everybody's, all."""
        place = ("9999", "")  # after every instant
        if before is not None:
            found = yield Statement("question", (before,))
            place = (found[0][7], before) if found else ("", "")
        rows = yield Statement("questions_page", (*place, principal, session_id, status, limit))
        return _all(rows)

    def open_in(self, chat: str, /) -> Read[list[StoredQuestion]]:
        """Return the open questions of a chat, oldest first."""
        rows = yield Statement("open_questions_of_chat", (chat,))
        return _all(rows)

    def open_of(self, run_id: RunId, /) -> Read[StoredQuestion | None]:
        """Return the open question of a run."""
        rows = yield Statement("open_question_of_run", (run_id,))
        return _stored(rows[0]) if rows else None

    def expired(self, now: str, /) -> Read[list[StoredQuestion]]:
        """Return the open questions whose time is over."""
        rows = yield Statement("expired_questions", (now,))
        return _all(rows)

    def close(self, answer: Answer, now: str, /) -> Write[bool]:
        """Store the answer if the question is open: the first one wins. False for later ones."""
        status = "expired" if answer.decision == "expired" else "answered"
        values = (answer.question_id, status, to_json(answer), now)
        rows = yield Statement("answer_question", values)
        return bool(rows)

    def close_run(self, run_id: RunId, now: str, /) -> Write[None]:
        """Close the open questions of a run that ends."""
        yield Statement("close_questions_of_run", (run_id, now))

    def add_plan(
        self, run_id: RunId, session_id: SessionId, plan: Plan, now: str, /
    ) -> Write[None]:
        """Store a version of a run's plan, or its new state."""
        yield Statement("store_plan", (run_id, plan.version, session_id, now, to_json(plan)))


def _all(rows: Iterable[Row]) -> list[StoredQuestion]:
    return [_stored(row) for row in rows]


def _stored(row: Row) -> StoredQuestion:
    *facts, status, answer = row
    given = None if answer is None else _answer.decode(answer)
    return StoredQuestion(QuestionRecord(_question.decode(facts[0]), *facts[1:]), status, given)


"""Open, then answered by a person, expired, or closed because its run ended."""
