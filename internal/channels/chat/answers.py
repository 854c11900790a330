"""Answer questions with messages, with /approve and /reject, and with the buttons of a card."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from internal.agent.app.chat_delivery import MessageFacts
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.app.runs.visibility import Writing, written_at
from internal.agent.domain.answers import (
    MAX_ANSWER_CHARS,
    MIN_ID_LENGTH,
    AnswerInput,
    matches_id,
    read_answer,
    split_last,
    split_question_id,
)
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LarkspurError,
    NotFound,
    RequestError,
    WrittenEarlier,
)
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.principals import Principal
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import chat_name
from internal.agent.domain.text import truncate_line
from internal.channels.chat.chat_rules import ChatRules
from internal.channels.chat.policy import ChatUsers, Ignored
from internal.channels.chat.question_text import (
    describe_late,
    describe_outcome,
    format_left,
    short_id,
    with_asker,
)
from internal.channels.chat.transport import (
    ActionResult,
    ChatAction,
    ChatTransport,
    IncomingMessage,
    QuestionContent,
)
from internal.i18n.chat import ChatPhrases, ChatTexts, answer_words

MAX_TITLE_LENGTH = 120
MAX_LISTED = 20
"""Questions of other chats in a list."""
LATE_NAME_SECONDS = 1.0
"""Longest wait of the response to a late action for the name of the person who answered."""
_ESCAPED_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#|~&!"})
_ID = re.compile(r"question-\S{1,100}|[0-9A-Za-z]{2,27}-r?\d{1,6}")


class ChatRef(NamedTuple):
    """A chat. `scope` names the conversation there; `is_personal`: it is of one sender."""

    chat_id: str
    scope: str
    is_direct: bool
    is_personal: bool = False


class MessageContext(NamedTuple):
    """A message in processing: its sender, its inbox row, its chat, the reply's language.

    `facts` and the chat's `rules` were read when its processing began.
    """

    actor: Actor
    row: InboundMessage
    chat: ChatRef
    phrases: ChatPhrases
    incoming: IncomingMessage
    facts: MessageFacts
    rules: ChatRules


class CommandResult(NamedTuple):
    """The result of a message: a reply or, if `settled` with it, only a reaction.

    `run_id` is a run to display. With `stopped` that run was stopped and reports this itself: there
    is only a reaction as well.
    """

    text: str = ""
    run_id: RunId | None = None
    settled: bool = False
    stopped: bool = False


_NOT_ADDRESSED = Ignored("it is not addressed to the bot")


class TextAnswers:
    """Turns texts into answers to the questions of their chat.

    A text answers the question that it replies to, or the only open one of its thread; a text that
    replies to another message answers none. In a group, calls, plans and interrupted runs take only
    texts addressed to the bot: replies to the question, texts that mention the bot, and texts that
    end with the question's id. A text that neither replies to a question nor ends with its id
    answers none that was asked after it was written.
    """

    def __init__(self, gateway: Gateway, people: ChatUsers) -> None:
        self._gateway, self._people = gateway, people

    async def answer(self, message: MessageContext, text: str) -> CommandResult | Ignored | None:
        """Take a text as an answer; None if it is none.

        The exact words for yes and no are never a task while a question is open. In a group, words
        that are not addressed to the bot are ignored.
        """
        open_ = message.facts.questions
        text, named = split_question_id(text, open_)
        found = await self._questions_at(message, open_)
        if not found and not open_ and message.chat.is_direct and is_answer_word(text):
            return await self._answer_elsewhere(text, message)
        is_explicit = named is not None or bool(message.incoming.quoted_id and found)
        is_addressed = is_explicit or message.chat.is_direct or message.incoming.is_mention
        if named is not None:
            found = [each for each in found if each.question.id == named.question.id]
            if not found:
                return _refer_to(named, message)
        elif not is_explicit:
            found = _without_newer(found, message)
        if len(found) == 1 and not _has_unknown_id(text, open_):
            return await self._take(
                found[0], text, message, is_addressed=is_addressed, is_explicit=is_explicit
            )
        visible = _without_newer(open_, message)
        decided = visible or [each for each in open_ if each.question.kind != "clarify"]
        if not decided or not (_is_exact(text, decided) or _has_unknown_id(text, open_)):
            return None
        return _ask_which(visible, message) if is_addressed else _NOT_ADDRESSED

    async def _answer_elsewhere(self, text: str, message: MessageContext) -> CommandResult | None:
        """Take an exact word in a direct chat for the question of another chat that it names.

        Without an id, the sender is asked which of the copies in this chat is meant.
        """
        elsewhere, sender = await self._list_elsewhere(message), message.incoming.user_id
        words, named = split_question_id(text, elsewhere)
        if named is not None:
            answer = read_answer(named.question, words, *answer_words(named.question.kind))
            return None if answer is None else await self._submit(named, answer, message, None)
        copies = [each for each in elsewhere if sender in each.question.recipients]
        is_answer = bool(copies) and not message.incoming.quoted_id and _is_exact(text, copies)
        return _ask_which(copies, message) if is_answer else None

    async def _list_elsewhere(self, message: MessageContext) -> list[QuestionRecord]:
        """Return the open questions of other chats that the sender may answer, oldest first."""
        chat, may_answer = message.actor.chat, partial(self._may_answer_elsewhere, message)
        found = await self._gateway.queries.open_questions_everywhere()
        return [each for each in found if each.chat != chat and may_answer(each)]

    def _may_answer_elsewhere(self, message: MessageContext, record: QuestionRecord) -> bool:
        return can_answer(record, self._actor(record, message))

    def _actor(self, record: QuestionRecord, message: MessageContext) -> Actor:
        """Return the sender with the rights in the chat of a question."""
        actor = message.actor
        if record.chat == actor.chat:
            return actor
        return self._people.act_in_chat(record.chat, actor.principal, message.facts.granted)

    async def _take(
        self,
        record: QuestionRecord,
        text: str,
        message: MessageContext,
        *,
        is_addressed: bool,
        is_explicit: bool,
    ) -> CommandResult | Ignored | None:
        question, is_exact = record.question, _is_exact(text, [record])
        is_allowed = can_answer(record, self._actor(record, message))
        if not is_addressed and not (question.kind == "clarify" and is_allowed):
            return _NOT_ADDRESSED if is_exact else None
        answer = read_answer(question, text, *answer_words(question.kind))
        if answer is None:
            return None
        if message.chat.is_personal and record.principal != message.actor.principal.id:
            is_allowed = False  # it was asked in the conversation of another person
        if not is_exact and (record.status != "open" or not (is_explicit or is_allowed)):
            return None
        return await self._submit(record, answer, message, _writing(message, is_named=is_explicit))

    async def _questions_at(
        self, message: MessageContext, open_: Sequence[QuestionRecord]
    ) -> list[QuestionRecord]:
        """Return the question that a message replies to, else the open ones of its thread."""
        incoming = message.incoming
        if not incoming.quoted_id:
            return [each for each in open_ if await self._is_asked_in(each, incoming)]
        quoted = await self._find_asked(incoming.quoted_id, message)
        return [] if quoted is None else [quoted]

    async def _is_asked_in(self, record: QuestionRecord, incoming: IncomingMessage) -> bool:
        """Return True if a question was asked in the thread of a message, or began that thread."""
        delivery, root = self._gateway.delivery, incoming.thread_root_id
        origin = await delivery.get_origin(record.task_id)
        if origin is not None and incoming.thread_id == origin.thread_id:
            return True
        if not root:
            return False
        is_of_task = origin is not None and root == origin.message_id
        return is_of_task or await delivery.find_question(root) == record.question.id

    async def approve(self, wanted: str, message: MessageContext) -> CommandResult:
        """Approve the question with that id, or the only open one."""
        found = await self._find(wanted, message)
        if isinstance(found, CommandResult):
            return found
        writing = _writing(message, is_named=bool(wanted))
        return await self._submit(found, AnswerInput("approve"), message, writing)

    async def reject(self, argument: str, message: MessageContext) -> CommandResult:
        """Reject a question: the argument is an id and a reason, or only a reason."""
        first, _, reason = argument.partition(" ")
        found = await self._find(first, message)
        if isinstance(found, CommandResult) and first and not _is_id(first):
            found, reason, first = await self._find("", message), argument, ""
        if isinstance(found, CommandResult):
            return found
        answer = AnswerInput("reject", reason.strip())
        writing = _writing(message, is_named=bool(first))
        return await self._submit(found, answer, message, writing)

    async def list_open(self, message: MessageContext) -> str:
        """Return the open questions of the chat as a list.

        In a direct chat, questions of other chats that the person may answer follow. In other
        chats, which other people read, only their number follows.
        """
        phrases, elsewhere = message.phrases, await self._list_elsewhere(message)
        open_, parts = await self._gateway.queries.open_questions(message.actor.chat), list[str]()
        if open_ or not elsewhere:
            listed = phrases("questions", questions=_format_list(open_, phrases))
            parts.append(listed if open_ else phrases("no_question"))
        if elsewhere and message.chat.is_direct:
            lines = await self._format_elsewhere(elsewhere, phrases)
            parts.append(phrases("questions_elsewhere", questions=lines))
        elif elsewhere:
            command = phrases.command("questions")
            parts.append(phrases("questions_in_direct", count=len(elsewhere), command=command))
        return "\n\n".join(parts)

    async def _format_elsewhere(
        self, records: Sequence[QuestionRecord], phrases: ChatPhrases
    ) -> str:
        """Return the lines of questions of other chats, with the people who wrote the tasks."""
        shown = records[:MAX_LISTED]
        names = await self._people.find_names(each.principal for each in shown)
        lines = [
            _format_line(each, phrases, names.get(each.principal) or phrases("asked_somebody"))
            for each in shown
        ]
        if more := len(records) - len(shown):
            lines.append(phrases("questions_more", count=more))
        return "\n".join(lines)

    async def _find_asked(self, message_id: str, message: MessageContext) -> QuestionRecord | None:
        """Return the question that a message of the bot asks."""
        name = await self._gateway.delivery.find_question(message_id)
        return await self._get(name, message) if name else None

    async def _get(self, name: str, message: MessageContext) -> QuestionRecord | None:
        """Return a question that the sender may see here or may answer elsewhere."""
        actor, question_id = message.actor, QuestionId(name)
        try:
            return await self._gateway.queries.question(question_id, actor.principal, actor.chat)
        except NotFound:
            found = await self._gateway.delivery.get_question(question_id)
        is_known = found is not None and self._may_answer_elsewhere(message, found.record)
        return found.record if found is not None and is_known else None

    async def _find(self, wanted: str, message: MessageContext) -> QuestionRecord | CommandResult:
        """Return the question that is meant, or the reply if none is."""
        open_ = await self._gateway.queries.open_questions(message.actor.chat)
        here = await self._questions_at(message, open_)
        if not wanted:
            incoming = message.incoming
            is_addressed = message.chat.is_direct or incoming.is_mention or incoming.quoted_id
            if not incoming.quoted_id:
                here = _without_newer(here, message)
            if is_addressed and len(here) == 1:
                return here[0]
            if not open_ and message.chat.is_direct and not incoming.quoted_id:
                open_ = await self._list_elsewhere(message)
            nothing = CommandResult(message.phrases("no_question"))
            return _ask_which(_without_newer(open_, message), message) if open_ else nothing
        found = [each for each in open_ if matches_id(each.question.id, wanted)]
        if not found and len(wanted) >= MIN_ID_LENGTH:
            elsewhere = await self._list_elsewhere(message)
            found = [each for each in elsewhere if matches_id(each.question.id, wanted)]
            if found:
                return found[0] if len(found) == 1 else _ask_which(found, message)
        if len(found) == 1:
            is_here = any(each.question.id == found[0].question.id for each in here)
            return found[0] if is_here else _refer_to(found[0], message)
        known = await self._get(wanted, message) if _is_id(wanted) else None
        unknown = message.phrases("unknown_question", wanted=truncate_line(wanted, 60))
        return known or CommandResult(unknown)

    async def _submit(
        self,
        record: QuestionRecord,
        answer: AnswerInput,
        message: MessageContext,
        writing: Writing,
    ) -> CommandResult:
        phrases, question_id = message.phrases, record.question.id
        if len(answer.text) > MAX_ANSWER_CHARS:
            return CommandResult(
                phrases("too_long", length=len(answer.text), most=MAX_ANSWER_CHARS)
            )
        named = await self._people.with_name(message.actor.principal)
        actor = self._actor(record, message)
        principal = msgspec.structs.replace(actor.principal, name=named.name)
        actor = actor._replace(principal=principal, writing=writing)
        try:
            answered = await self._gateway.answer(question_id, answer, actor, message=message.row)
        except RequestError as error:
            return CommandResult(await self._explain(error, record, message))
        return CommandResult(run_id=answered.run_id, settled=True)

    async def _explain(
        self, error: RequestError, record: QuestionRecord, message: MessageContext
    ) -> str:
        """Return why an answer does not count."""
        phrases = message.phrases
        match error:
            case NotFound():
                return phrases("unknown_question", wanted=short_id(record.question.id))
            case Forbidden():
                return phrases(f"click_{record.audience}")
            case WrittenEarlier():
                return phrases("written_before_question")
            case Conflict():
                return await self._describe_late(record, message)
            case _:
                return str(error)

    async def _describe_late(self, record: QuestionRecord, message: MessageContext) -> str:
        current = await self._get(record.question.id, message) or record
        if current.status == "open":  # it has expired but was not closed yet
            current = current._replace(status="expired")
        return describe_late(current, message.actor.principal.id, message.phrases)


def escape_markdown(text: str) -> str:
    """Return Markdown that shows a text as it is."""
    return text.translate(_ESCAPED_MARKDOWN)


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _has_unknown_id(text: str, open_: Sequence[QuestionRecord]) -> bool:
    """Return True for an exact word and an id that is not that of an open question."""
    words, last = split_last(text)
    return _is_id(last) and _is_exact(words, open_)


def _is_exact(text: str, questions: Sequence[QuestionRecord]) -> bool:
    """Return True for the exact words that answer such questions."""
    is_recovery = any(each.question.kind == "recovery" for each in questions)
    return _is_word(text, "recovery" if is_recovery else "approval")


def is_answer_word(text: str) -> bool:
    """Return True for an exact word that answers some question, perhaps with an id."""
    words, last = split_last(text)
    has_id = len(last) >= MIN_ID_LENGTH
    return _is_word(text, "recovery") or (has_id and _is_word(words, "recovery"))


def _is_word(text: str, kind: str) -> bool:
    """Return True for exactly one of the words that answer questions of a kind."""
    yes, no = answer_words(kind)
    return text.strip().lower().rstrip(".!\u3002\uff01") in yes | no


def _without_newer(
    questions: Sequence[QuestionRecord], message: MessageContext
) -> list[QuestionRecord]:
    """Return the questions that the writer of a message could have seen."""
    return [each for each in questions if each.question.id not in message.facts.newer]


def _writing(message: MessageContext, *, is_named: bool) -> Writing:
    """Return when a message was written; one that names its question counts as written now."""
    is_named = is_named or bool(message.incoming.quoted_id)
    return None if is_named else written_at(message.row)


def _ask_which(visible: Sequence[QuestionRecord], message: MessageContext) -> CommandResult:
    """Ask which of the open questions is meant; with none, all were asked later."""
    if not visible:
        return CommandResult(message.phrases("written_before_question"))
    questions = _format_list(visible, message.phrases)
    return CommandResult(message.phrases("which_question", questions=questions))


def _refer_to(record: QuestionRecord, message: MessageContext) -> CommandResult:
    wanted = short_id(record.question.id)
    return CommandResult(message.phrases("question_elsewhere", wanted=wanted))


def _format_list(open_: Sequence[QuestionRecord], phrases: ChatPhrases) -> str:
    return "\n".join(_format_line(each, phrases) for each in open_)


def _format_line(record: QuestionRecord, phrases: ChatPhrases, who: str = "") -> str:
    question = record.question
    title = truncate_line(with_asker(_title(record, phrases), question, phrases), MAX_TITLE_LENGTH)
    return phrases(
        "question_line_of" if who else "question_line",
        id=short_id(question.id),
        about=phrases(f"asked_about_{question.kind}"),
        title=escape_markdown(title),
        left=format_left(record.expires, phrases),
        **({"who": escape_markdown(who)} if who else {}),
    )


def _title(record: QuestionRecord, phrases: ChatPhrases) -> str:
    question = record.question
    if question.plan is not None:
        return question.plan.goal
    if question.calls:
        return question.calls[0].what
    return phrases.runs.question_title(question.title, question.reason_code)


log = logging.getLogger(__name__)


class ActionAnswers:
    """Turns actions into answers. `on_answered` gets the run that continues.

    `start` starts work that must not delay the response to an action.
    """

    def __init__(
        self,
        transport: ChatTransport,
        gateway: Gateway,
        people: ChatUsers,
        *,
        texts: ChatTexts,
        on_answered: Callable[[RunId], None],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._transport, self._gateway, self._people = transport, gateway, people
        self._texts, self._on_answered, self._start = texts, on_answered, start

    async def handle(self, action: ChatAction) -> ActionResult:
        """Store the answer that an action stands for, if it stands for one.

        Raises:
            StoreError: nothing was stored.
        """
        found = await self._gateway.delivery.get_question(QuestionId(action.question_id))
        if found is not None and action.user_id in found.record.question.recipients:
            is_here = found.record.chat == self._chat(action)
            copy_for = "" if is_here else action.user_id
            found = await self._gateway.delivery.get_question(found.record.question.id, copy_for)
        elif found is not None and found.record.chat != self._chat(action):
            found = None
        if found is None:
            return self._refuse(action, "click_unknown", self._texts.phrases_for(""))
        record, phrases = found.record, self._texts.phrases_for(found.instruction)
        answer: AnswerInput | str = action.read_answer(record.question)
        if found.message_id != action.message_id:
            answer = "click_unknown" if found.message_id else "click_early"
        if isinstance(answer, str):
            return self._refuse(action, answer, phrases)
        return await self._submit(action, record, answer, phrases=phrases)

    async def _submit(
        self,
        action: ChatAction,
        record: QuestionRecord,
        answer: AnswerInput,
        *,
        phrases: ChatPhrases,
    ) -> ActionResult:
        principal = await self._people.principal(
            action.user_id, action.chat_id, is_external=action.is_external
        )
        actor = Actor(principal, self._transport.name, self._chat(action))
        if record.chat != actor.chat:  # a copy
            granted = await self._people.granted_rights(action.user_id)
            actor = self._people.act_in_chat(record.chat, principal, granted)
            principal = actor.principal
        if can_answer(record, actor):  # the name is stored with the answer
            actor = actor._replace(principal=await self._people.with_known_name(principal))
        try:
            answered = await self._gateway.answer(record.question.id, answer, actor)
        except Conflict:
            return await self._describe_late(record, principal.id, phrases)
        except Forbidden:
            return self._refuse(action, f"click_{record.audience}", phrases)
        except InvalidRequest as error:
            return ActionResult("warning", str(error))
        self._on_answered(answered.run_id)
        if not actor.principal.name:
            self._start(self._add_name(record.question.id, principal))
        log.info("question answered", extra={"question_id": record.question.id})
        outcome = describe_outcome(answered, phrases).text
        return ActionResult("success", outcome, QuestionContent(answered, phrases))

    async def _add_name(self, question_id: QuestionId, principal: Principal) -> None:
        """Ask the service for the name of the person who answered."""
        try:
            if name := (await self._people.with_name(principal)).name:
                await self._gateway.delivery.name_answerer(question_id, name)
        except LarkspurError as error:
            log.info("name of an answer not stored", extra={"reason": str(error)})

    async def _describe_late(
        self, record: QuestionRecord, principal_id: str, phrases: ChatPhrases
    ) -> ActionResult:
        """Return the first answerer, and the current state of the question."""
        found = await self._gateway.delivery.get_question(record.question.id)
        current = await self._with_answerer(record if found is None else found.record)
        text = describe_late(current, principal_id, phrases)
        if current.status == "open":
            return ActionResult("info", text)
        return ActionResult("info", text, QuestionContent(current, phrases))

    async def _with_answerer(self, record: QuestionRecord) -> QuestionRecord:
        """Return a question with the name of its answerer, if it is stored soon enough.

        The name may not be stored yet: answering a question does not wait for it.
        """
        answer = record.answer
        if answer is None or answer.name:
            return record
        try:
            async with asyncio.timeout(LATE_NAME_SECONDS):
                name = await self._people.name_of(answer.by)
        except TimeoutError:
            return record
        return record._replace(answer=msgspec.structs.replace(answer, name=name))

    def _refuse(self, action: ChatAction, key: str, phrases: ChatPhrases) -> ActionResult:
        details = {"reason": key, "user_id": action.user_id, "message_id": action.message_id}
        log.info("action refused", extra=details)
        return ActionResult("warning", phrases(key))

    def _chat(self, action: ChatAction) -> str:
        return chat_name(self._transport.name, self._transport.app, action.chat_id)
