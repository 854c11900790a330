"""Questions of runs as messages of a conversation, and the messages that answer them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from internal.agent.domain.answers import MIN_ID_LENGTH, AnswerInput, read_answer, split_question_id
from internal.agent.domain.ids import SessionId
from internal.agent.domain.questions import ApprovalItem, Question, QuestionRecord
from internal.channels.web.endpoints import ApiRequest
from internal.i18n.catalog import MessageCatalog
from internal.i18n.chat import answer_words, has_chinese
from internal.i18n.runs import RunMessages

MAX_LINES = 40
"""Lines of a command or a change; the number of further ones is shown."""
MAX_QUESTIONS = 50
"""Open questions of a session that are told and can be answered in its conversation."""

_CODE_LENGTH = 6


class ReadReply(NamedTuple):
    """The question that a message is about, and its answer, or the `remark` why it has none."""

    record: QuestionRecord
    answer: AnswerInput | None
    remark: str = ""


def phrases_for(text: str) -> MessageCatalog:
    """Return the sentences for a conversation in the language of a text."""
    return MessageCatalog("completions", "zh" if has_chinese(text) else "en")


class AskedQuestions(NamedTuple):
    """The open questions of a session, oldest first, and the task of the newest one."""

    records: Sequence[QuestionRecord]
    instruction: str

    @property
    def phrases(self) -> MessageCatalog:
        """The sentences in the language of the task."""
        return phrases_for(self.instruction)


async def list_asked(request: ApiRequest[Any, Any], session_id: SessionId) -> AskedQuestions:
    """Return the open questions of a session."""
    found = await request.services.gateway.queries.questions(
        request.principal, session_id=session_id, limit=MAX_QUESTIONS
    )
    instruction = found[0][1].instruction if found else ""
    return AskedQuestions([record for record, _ in found][::-1], instruction)


def read_reply(questions: AskedQuestions, text: str) -> ReadReply:
    """Read a message as the answer to one of the open questions of its conversation.

    With several it ends with the code of the one that it answers, as in chats.
    """
    asked, phrases = questions.records, questions.phrases
    words, named = split_question_id(text, asked)
    if named is None and len(asked) > 1:
        which = phrases("which", count=len(asked), code=_code(asked[0].question))
        return ReadReply(asked[-1], None, f"{which}\n\n{question_text(asked, phrases)}")
    record = named or asked[0]
    answer = read_answer(record.question, words, *answer_words(record.question.kind))
    remark = f"{phrases('not_taken')}\n\n{question_text(asked, phrases)}"
    return ReadReply(record, answer, "" if answer else remark)


def question_text(asked: Sequence[QuestionRecord], phrases: MessageCatalog) -> str:
    """Return open questions as Markdown, with instructions for answering them here."""
    parts = [phrases("waits")]
    for record in asked:
        parts += _parts(record.question, phrases, has_code=len(asked) > 1)
    return "\n\n".join(parts)


def _parts(question: Question, phrases: MessageCatalog, *, has_code: bool) -> Iterator[str]:
    runs = RunMessages(phrases.language)
    title = runs.question_title(question.title, question.reason_code)
    asked_by = question.asked_by
    yield f"**{phrases('asked_by', path=asked_by, title=title) if asked_by else title}**"
    if question.body.strip() not in {"", title.strip()}:
        yield _cut(question.body, phrases)
    if question.plan is not None:
        if question.plan.goal != title:
            yield question.plan.goal
        steps = enumerate(question.plan.steps, 1)
        yield "\n".join(f"{number}. {step.description}" for number, step in steps)
    for number, call in enumerate(question.calls, 1):
        yield _call(call, number if len(question.calls) > 1 else 0, phrases)
    if question.options:
        yield "\n".join(f"{n}. {option}" for n, option in enumerate(question.options, 1))
    yield " ".join(_how(question, phrases, has_code=has_code))


def _call(call: ApprovalItem, number: int, phrases: MessageCatalog) -> str:
    shown = _cut(call.diff or call.what, phrases)
    fence = "```"
    while fence in shown:
        fence += "`"
    head = f"{number}. {call.title or call.tool}\n" if number else ""
    reason = f"\n{call.reason}" if call.reason else ""
    whole = f"\n{phrases('whole_call')}" if call.whole is not None else ""
    return f"{head}{fence}\n{shown}\n{fence}{reason}{whole}"


def _how(question: Question, phrases: MessageCatalog, *, has_code: bool) -> Iterator[str]:
    """Yield how a question is answered: in the conversation, and elsewhere."""
    several = len(question.calls) > 1
    match question.kind:
        case "approval":
            count = len(question.calls)
            yield phrases("reply_approvals", count=count) if several else phrases("reply_approval")
        case "plan":
            yield phrases("reply_plan")
        case "recovery":
            yield phrases("reply_recovery")
        case "clarify" if question.options:
            yield phrases("reply_options") if question.multiple else phrases("reply_option")
        case "clarify":
            yield phrases("reply_words")
    if has_code:
        yield phrases("reply_code", code=_code(question))
    yield phrases("elsewhere", id=question.id)


def _code(question: Question) -> str:
    return question.id[-max(MIN_ID_LENGTH, _CODE_LENGTH) :]


def _cut(text: str, phrases: MessageCatalog) -> str:
    lines = text.rstrip().splitlines()
    more = len(lines) - MAX_LINES
    note = [phrases("more_lines", count=more)] if more > 0 else []
    return "\n".join([*lines[:MAX_LINES], *note])
