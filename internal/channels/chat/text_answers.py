"""Deciding: what people write about questions becomes answers. Buttons are not seen here."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.questions import Actor, can_answer
from internal.agent.domain.answers import MAX_ANSWER_CHARS, AnswerInput, read_answer
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.text import truncate_line
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.question_text import late, moment
from internal.channels.lark.directory import People
from internal.i18n.chat import ChatPhrases, approval_words

_ID = re.compile(r"question-\S{1,100}|[0-9A-Za-z]{2,27}-\d{1,3}")
_FEWEST = 4
"""Characters of an id that name it."""


class Did(NamedTuple):
    """What became of a message: a sentence to answer with, or, `settled`, a sign is enough.

    `run_id` goes on or begins and is to be shown.
    """

    text: str = ""
    run_id: RunId | None = None
    settled: bool = False


class Place(NamedTuple):
    """Where something was said: the chat, the name of its conversation, whether it is of two."""

    chat_id: str
    scope: str
    direct: bool


class Speaker(NamedTuple):
    """Who writes, where, and in which words they are answered; `row` is the message."""

    answerer: Actor
    words: ChatPhrases
    row: InboundMessage


class Deciding:
    """Takes answers to the questions of a chat."""

    def __init__(
        self, gateway: Gateway, database: Database, stores: Stores, people: People
    ) -> None:
        self._gateway, self._database, self._outbox = gateway, database, stores.outbox
        self._people = people

    async def hear(self, speaker: Speaker, text: str, quoted_id: str) -> Did | None:
        """Take a text as an answer; None when it is none.

        It is one when it quotes the question, or when one question alone is open in the chat and
        whoever writes may answer it. Exact words for yes and no are never a task meanwhile.
        """
        quoted = await self._quoted(speaker.answerer, quoted_id)
        open_ = await self._gateway.queries.open_questions(speaker.answerer.chat)
        asked = quoted or (open_[0] if len(open_) == 1 else None)
        if asked is None:
            return _which(open_, speaker) if open_ and _is_exact(text) else None
        given = read_answer(asked.question, text, *approval_words())
        if given is None:
            return None
        exact = _is_exact(text)
        if asked.status != "open" and not exact:
            return None
        if quoted is None and not exact and not can_answer(asked, speaker.answerer):
            return None
        return await self._answer(asked, given, speaker)

    async def approve(self, wanted: str, speaker: Speaker) -> Did:
        """Say yes to the question of that id, or the one that is open."""
        found = await self._find(wanted, speaker)
        return (
            found
            if isinstance(found, Did)
            else await self._answer(found, AnswerInput("approve"), speaker)
        )

    async def reject(self, wanted: str, speaker: Speaker) -> Did:
        """Say no, with the reason that follows the id, or that stands in its place."""
        first, _, because = wanted.partition(" ")
        found = await self._find(first, speaker)
        if isinstance(found, Did) and first and not _is_id(first):
            found, because = await self._find("", speaker), wanted
        if isinstance(found, Did):
            return found
        return await self._answer(found, AnswerInput("reject", because.strip()), speaker)

    async def listed(self, speaker: Speaker) -> str:
        """Return the open questions of the chat as a list."""
        open_ = await self._gateway.queries.open_questions(speaker.answerer.chat)
        words = speaker.words
        return words("questions", questions=_list(open_, words)) if open_ else words("no_question")

    async def _quoted(self, answerer: Actor, message_id: str) -> QuestionRecord | None:
        if not message_id:
            return None
        name = await self._database.read(partial(self._outbox.find_question, message_id))
        return await self._known(name, answerer) if name else None

    async def _known(self, name: str, answerer: Actor) -> QuestionRecord | None:
        queries = self._gateway.queries
        try:
            return await queries.question(QuestionId(name), answerer.principal, answerer.chat)
        except NotFound:
            return None

    async def _find(self, wanted: str, speaker: Speaker) -> QuestionRecord | Did:
        """Return the question that is meant, or what to say when none is."""
        open_ = await self._gateway.queries.open_questions(speaker.answerer.chat)
        if not wanted:
            match open_:
                case []:
                    return Did(speaker.words("no_question"))
                case [one]:
                    return one
                case _:
                    return _which(open_, speaker)
        found = [each for each in open_ if names(each.question.id, wanted)]
        if len(found) == 1:
            return found[0]
        known = await self._known(wanted, speaker.answerer) if _is_id(wanted) else None
        return known or Did(speaker.words("unknown_question", wanted=truncate_line(wanted, 60)))

    async def _answer(self, asked: QuestionRecord, given: AnswerInput, speaker: Speaker) -> Did:
        words, question_id = speaker.words, asked.question.id
        if len(given.text) > MAX_ANSWER_CHARS:
            return Did(words("too_long", length=len(given.text), most=MAX_ANSWER_CHARS))
        named = await self._people.named(speaker.answerer.principal)
        answerer = speaker.answerer._replace(principal=named)
        try:
            answered = await self._gateway.answer(question_id, given, answerer, message=speaker.row)
        except NotFound:
            return Did(words("unknown_question", wanted=short(question_id)))
        except Forbidden:
            return Did(words(f"click_{asked.audience}"))
        except InvalidRequest as error:
            return Did(str(error))
        except Conflict:
            return Did(await self._late(asked, speaker))
        return Did(run_id=answered.run_id, settled=True)

    async def _late(self, asked: QuestionRecord, speaker: Speaker) -> str:
        now = await self._known(asked.question.id, speaker.answerer) or asked
        if now.status == "open":  # its time is over, and nobody has closed it yet
            now = now._replace(status="expired")
        return late(now, speaker.answerer.principal.id, speaker.words)


def short(name: str) -> str:
    """Return the end of an id, enough to name it in a chat."""
    return name[-6:]


def names(name: str, wanted: str) -> bool:
    """Say whether a person means that id: all of it, or its end."""
    return len(wanted) >= _FEWEST and name.lower().endswith(wanted.lower())


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def _is_exact(text: str) -> bool:
    yes, no = approval_words()
    return text.strip().lower().rstrip(".!\u3002\uff01") in yes | no


def _which(open_: Sequence[QuestionRecord], speaker: Speaker) -> Did:
    return Did(speaker.words("which_question", questions=_list(open_, speaker.words)))


def _list(open_: Sequence[QuestionRecord], words: ChatPhrases) -> str:
    return "\n".join(
        words(
            "question_line",
            id=short(each.question.id),
            about=words(f"asked_about_{each.question.kind}"),
            title=truncate_line(_title(each), 120),
            until=moment(each.expires),
        )
        for each in open_
    )


def _title(asked: QuestionRecord) -> str:
    question = asked.question
    if question.plan is not None:
        return question.plan.goal
    return question.calls[0].what if question.calls else question.title
