"""Questions and plans in tables."""

from collections.abc import Iterable

import msgspec

from internal.agent.domain.ids import QuestionId, RunId, SessionId
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Question
from internal.agent.ports.database import Read, Row, Statement, Write
from internal.agent.ports.stores import OpenQuestion
from internal.storage.stores.text import to_json

_question = msgspec.json.Decoder(Question)
_answer = msgspec.json.Decoder(Answer)


class QuestionStore:
    """Fills `Questions`. A question is open, then answered, expired or closed (its run ended)."""

    def ask(
        self, question: Question, run_id: RunId, session_id: SessionId, now: str, expires: str, /
    ) -> Write[None]:
        """Store an open question. A replayed Turn asks again: what is stored stays as it is."""
        yield Statement(
            "insert_question",
            (question.id, run_id, session_id, now, expires, to_json(question)),
        )

    def get(self, question_id: QuestionId, /) -> Read[OpenQuestion | None]:
        """Return a question."""
        rows = yield Statement("question", (question_id,))
        return _stored(rows[0]) if rows else None

    def open_for(self, session_id: SessionId, /) -> Read[list[OpenQuestion]]:
        """Return a session's open questions, oldest first."""
        rows = yield Statement("open_questions_of_session", (session_id,))
        return _all(rows)

    def expired(self, now: str, /) -> Read[list[OpenQuestion]]:
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


def _all(rows: Iterable[Row]) -> list[OpenQuestion]:
    return [_stored(row) for row in rows]


def _stored(row: Row) -> OpenQuestion:
    question, run_id, session_id, status, expires, answer = row
    given = None if answer is None else _answer.decode(answer)
    return OpenQuestion(_question.decode(question), run_id, session_id, status, expires, given)
