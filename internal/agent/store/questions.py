"""Questions to people, their answers, and the plans of runs."""

from collections.abc import Iterable

import msgspec

from internal.agent.domain.ids import QuestionId, RunId, SessionId
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Answer, Question, QuestionRecord, QuestionStatus
from internal.agent.store.database import Read, Row, Statement, Write
from internal.agent.store.encoding import to_json

_question = msgspec.json.Decoder(Question)
_answer = msgspec.json.Decoder(Answer)
_FIRST_CURSOR = ("9999", "")  # sorts after every (timestamp, id)


class QuestionStore:
    """Questions and plans."""

    def add(self, record: QuestionRecord, /) -> Write[None]:
        """Insert an open question. Nothing changes when it exists: a replayed Turn asks again."""
        question = record.question
        yield Statement(
            "insert_question",
            (
                question.id,
                record.run_id,
                record.task_id,
                record.session_id,
                record.principal,
                record.chat,
                record.audience,
                record.asked,
                record.expires,
                to_json(question),
            ),
        )

    def get(self, question_id: QuestionId, /) -> Read[QuestionRecord | None]:
        """Return a question."""
        rows = yield Statement("question", (question_id,))
        return _record(rows[0]) if rows else None

    def list_page(
        self,
        principal: str | None,
        session_id: SessionId | None,
        status: QuestionStatus | None,
        *,
        before: str | None,
        limit: int,
    ) -> Read[list[QuestionRecord]]:
        """Return questions, newest first.

        Args:
            principal: the principal who submitted their tasks; None for all principals.
            session_id: only questions of this session.
            status: only questions with this status.
            before: return the questions after this question id in the order.
            limit: the maximum number of questions.
        """
        cursor: Row = _FIRST_CURSOR
        if before is not None:
            found = yield Statement("question", (before,))
            cursor = (_record(found[0]).asked, before) if found else ("", "")
        values = (*cursor, limit)
        if session_id is not None:
            of_session = (*values, status, session_id, principal)
            rows = yield Statement("questions_page_of_session", of_session)
        elif principal is not None:
            rows = yield Statement("questions_page_of_principal", (*values, status, principal))
        elif status is not None:
            rows = yield Statement("questions_page_of_status", (*values, status))
        else:
            rows = yield Statement("questions_page", values)
        return _records(rows)

    def list_open_in_chat(self, chat: str, /) -> Read[list[QuestionRecord]]:
        """Return the open questions of a chat, oldest first."""
        rows = yield Statement("open_questions_of_chat", (chat,))
        return _records(rows)

    def get_open_of_run(self, run_id: RunId, /) -> Read[QuestionRecord | None]:
        """Return the open question of a run."""
        rows = yield Statement("open_question_of_run", (run_id,))
        return _record(rows[0]) if rows else None

    def list_to_urge(
        self, account: str, asked_until: str, limit: int, /
    ) -> Read[list[QuestionRecord]]:
        """Return open questions of an account that nobody was alerted to, oldest first.

        `account` is the beginning of the names of its chats.
        """
        rows = yield Statement("questions_to_urge", (account, asked_until, limit))
        return _records(rows)

    def mark_urged(self, question_id: QuestionId, now: str, /) -> Write[bool]:
        """Store that people are alerted now. False if they were before, or it is not open."""
        return bool((yield Statement("mark_question_urged", (question_id, now))))

    def unmark_urged(self, question_id: QuestionId, /) -> Write[None]:
        """Store that nobody was alerted after all."""
        yield Statement("unmark_question_urged", (question_id,))

    def list_expired(self, now: str, /) -> Read[list[QuestionRecord]]:
        """Return the open questions whose expiry time has passed."""
        rows = yield Statement("expired_questions", (now,))
        return _records(rows)

    def close(self, answer: Answer, now: str, /) -> Write[bool]:
        """Store the answer to an open question. False when the question is not open any more."""
        status = "expired" if answer.decision == "expired" else "answered"
        values = (answer.question_id, status, to_json(answer), now)
        rows = yield Statement("answer_question", values)
        return bool(rows)

    def name_answerer(self, question_id: QuestionId, name: str, /) -> Write[None]:
        """Add the name of the person to an answer without one."""
        record = yield from self.get(question_id)
        if record is not None and record.answer is not None and not record.answer.name:
            answer = msgspec.structs.replace(record.answer, name=name)
            yield Statement("replace_answer", (question_id, to_json(answer)))

    def close_of_run(self, run_id: RunId, now: str, /) -> Write[None]:
        """Close the open questions of a run that ends."""
        yield Statement("close_questions_of_run", (run_id, now))

    def save_plan(
        self, run_id: RunId, session_id: SessionId, plan: Plan, *, now: str
    ) -> Write[None]:
        """Store a version of a run's plan, or the new state of a stored version."""
        yield Statement("upsert_plan", (run_id, plan.version, session_id, now, to_json(plan)))


def _records(rows: Iterable[Row]) -> list[QuestionRecord]:
    return [_record(row) for row in rows]


def _record(row: Row) -> QuestionRecord:
    record = QuestionRecord._make(row)
    answer = None if row[-1] is None else _answer.decode(row[-1])
    return record._replace(question=_question.decode(row[0]), answer=answer)
