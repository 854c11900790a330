"""A question as people see it: a card with buttons, a rich text, a text. Pure.

An open question shows what is asked, who may answer and until when; one that is not open any more
shows what was decided and by whom, and nothing to press.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from internal.agent.domain.questions import Answer, ApprovalItem, Question, QuestionRecord
from internal.agent.domain.text import truncate_line
from internal.channels.chat.question_text import allowed, by_whom, moment, outcome
from internal.channels.lark.api_calls import as_json
from internal.channels.lark.card_elements import Element, markdown, plain
from internal.channels.lark.message_format import (
    MOST_RICH,
    MOST_TEXT,
    Form,
    Part,
    inert,
    post,
    size,
    texts,
)
from internal.channels.lark.question_form import MOST_CALLS, controls, on_buttons
from internal.i18n.chat import ChatPhrases

QUESTION_MARK = "❓\u200b"
"""What a text begins with that asks, or tells what became of a question."""

_ROOMS = (50_000, 6_000, 2_500, 1_000, 400, 150)
"""Characters of each text on a card: the first of these with which Lark takes the card."""
_LINES, _ALL = 60, 10**9
_RISKS = frozenset({"read", "write", "exec", "net"})
_COLOURS = {"plan": "blue", "clarify": "turquoise", "approval": "orange"}


Drawn = TypeVar("Drawn", dict[str, Any], str)


class Block(NamedTuple):
    """A piece of what is shown: text, options, a remark, code, a diff, or Markdown of ours."""

    kind: Literal["text", "options", "soft", "code", "diff", "ours"]
    text: str


class Room:
    """How much is shown of each text and of the calls; `cut`: something was left out."""

    def __init__(self, most: int, words: ChatPhrases, *, whole: bool = False) -> None:
        self._most, self._words = most, words
        self._lines, self.calls = (_ALL, _ALL) if whole else (_LINES, MOST_CALLS)
        self.cut = False

    def fit(self, text: str) -> str:
        """Return the text, or its first lines and how many more there are."""
        shown = "\n".join(text.split("\n", self._lines)[: self._lines])
        if len(shown) > self._most:
            shown = shown[: self._most].rpartition("\n")[0] or shown[: self._most]
        left = text[len(shown) :]
        if not left:
            return text
        self.cut = True
        whole_lines, count = left.startswith("\n"), left.count("\n")
        phrase = "asked_more_lines" if whole_lines else "asked_more_characters"
        return f"{shown}\n{self._words(phrase, count=count if whole_lines else len(left))}"


def question_card(asked: QuestionRecord, words: ChatPhrases, app_id: str) -> dict[str, Any]:
    """Return the card of a question as it stands now."""
    return _fitted(partial(_card, asked, words, app_id), words)[0]


def question_forms(asked: QuestionRecord, words: ChatPhrases, app_id: str) -> Sequence[Form]:
    """Return the forms of a question, the best first; what a card cannot hold comes as a file."""
    card, cut = _fitted(partial(_card, asked, words, app_id), words)
    parts = [Part("interactive", as_json(card))]
    if cut:
        whole = _as_text(_shown(asked, words, app_id, Room(_ALL, words, whole=True)))
        file = (words("asked_file_name"), whole.encode("utf-8", "replace"))
        parts.append(Part("file", "", file, spare=True))
    text, _ = _fitted(partial(_text, asked, words, app_id), words)
    return (("card", tuple(parts)), ("post", (post(text),)), ("text", texts(text, MOST_TEXT)))


def news_forms(asked: QuestionRecord, words: ChatPhrases, app_id: str) -> Sequence[Form]:
    """Return the forms of a short message about a question whose card cannot be replaced."""
    said = outcome(asked, words).said
    about = truncate_line(asked.question.title, 200)
    news = [Block("text", f"{QUESTION_MARK} {said}: {about}")]
    if (answer := _person(asked)) is not None:
        news.append(_by(answer, app_id, words))
    text = _as_text([*news, *_foot(asked, words)])
    return (("post", (post(text),)), ("text", texts(text, MOST_TEXT)))


def _fitted(draw: Callable[[Room], Drawn], words: ChatPhrases) -> tuple[Drawn, bool]:
    """Draw in the first room with which Lark takes it; say whether something was left out."""
    for most in _ROOMS:
        room = Room(most, words)
        drawn = draw(room)
        if size(as_json(as_json(drawn))) <= MOST_RICH:
            return drawn, room.cut
    smallest = Room(_ROOMS[-1], words)
    return draw(smallest), smallest.cut


def _text(asked: QuestionRecord, words: ChatPhrases, app_id: str, room: Room) -> str:
    shown = _shown(asked, words, app_id, room)
    blocks = [Block("text", _title(asked, words)), *shown, *_foot(asked, words)]
    return f"{QUESTION_MARK} {_as_text(blocks)}"


def _card(asked: QuestionRecord, words: ChatPhrases, app_id: str, room: Room) -> dict[str, Any]:
    blocks = _shown(asked, words, app_id, room)
    if asked.status == "open" and on_buttons(asked.question):
        blocks = [block for block in blocks if block.kind != "options"]
    elements = [_element(block) for block in blocks]
    if room.cut:
        elements.append(plain(words("asked_whole"), soft=True))
    if asked.status == "open":
        elements += controls(asked.question, words)
    elements += [_element(block) for block in _foot(asked, words)]
    return {
        "schema": "2.0",
        "config": {"update_multi": True, "width_mode": "fill"},
        "header": _header(asked, words),
        "body": {"elements": elements},
    }


def _header(asked: QuestionRecord, words: ChatPhrases) -> Element:
    title: Element = {"tag": "plain_text", "content": _title(asked, words)}
    if asked.status == "open":
        return {"title": title, "template": _COLOURS[asked.question.kind]}
    said, colour = outcome(asked, words)
    return {
        "title": {"tag": "plain_text", "content": said},
        "subtitle": title,
        "template": colour,
    }


def _title(asked: QuestionRecord, words: ChatPhrases) -> str:
    question = asked.question
    if question.kind != "approval":
        return words(f"asked_{question.kind}")
    count = len(question.calls)
    return words("asked_call") if count == 1 else words("asked_calls", count=count)


def _shown(asked: QuestionRecord, words: ChatPhrases, app_id: str, room: Room) -> list[Block]:
    """Return what is asked and, when it is over, what became of it."""
    found = _subject(asked, words, room)
    if (answer := _person(asked)) is None:
        return found
    return [*found, *_decided(answer, words, room), _by(answer, app_id, words)]


def _subject(asked: QuestionRecord, words: ChatPhrases, room: Room) -> list[Block]:
    match asked.question.kind:
        case "plan":
            return _plan(asked.question, words, room)
        case "clarify":
            return _question(asked.question, room)
        case "approval":
            return _calls(asked, words, room)


def _plan(question: Question, words: ChatPhrases, room: Room) -> list[Block]:
    plan = question.plan
    if plan is None:
        return [Block("text", room.fit(question.title))]
    goal = words("asked_goal", goal=room.fit(plan.goal))
    steps = _numbered([step.description for step in plan.steps])
    return [Block("text", goal), Block("text", room.fit(steps))]


def _question(question: Question, room: Room) -> list[Block]:
    found = [Block("text", room.fit(text)) for text in (question.title, question.body) if text]
    options = _numbered([room.fit(option) for option in question.options])
    return [*found, Block("options", options)] if options else found


def _calls(asked: QuestionRecord, words: ChatPhrases, room: Room) -> list[Block]:
    calls, answer = asked.question.calls, _person(asked)
    found: list[Block] = []
    for number, call in enumerate(calls[: room.calls], 1):
        mark = "" if answer is None else ("✓ " if allowed(answer, call.call_id) else "✗ ")
        place = f"{number}. " if len(calls) > 1 else ""
        found += _call(call, f"{mark}{place}", words, room)
    if (left := len(calls) - room.calls) > 0:
        room.cut = True
        found.append(Block("text", words("asked_more_calls", count=left)))
    return found


def _call(call: ApprovalItem, mark: str, words: ChatPhrases, room: Room) -> list[Block]:
    does, tool = words.tool(call.tool), truncate_line(call.tool, 60)
    found = [Block("text", f"{mark}{does} ({tool})"), Block("code", room.fit(call.what))]
    if call.whole is not None:
        found.append(Block("text", words("asked_too_long", count=f"{call.whole.size:,}")))
    if call.diff:
        found.append(Block("diff", room.fit(call.diff)))
    risk = words(f"risk_{call.risk}" if call.risk in _RISKS else "risk_other")
    why = truncate_line(call.reason, 300)
    found.append(Block("soft", words("asked_why", risk=risk, why=why) if why else risk))
    return found


def _decided(answer: Answer, words: ChatPhrases, room: Room) -> list[Block]:
    """Return what a person said besides yes or no."""
    found: list[Block] = []
    if answer.edit is not None:
        steps = room.fit(_numbered(answer.edit.steps))
        found.append(Block("text", words("asked_new_steps", steps=steps)))
    if answer.text.strip():
        found.append(Block("text", f"“{room.fit(answer.text.strip())}”"))
    if answer.rules:
        rules = room.fit(", ".join(answer.rules))
        found.append(Block("soft", words("asked_rules_written", rules=rules)))
    return found


def _foot(asked: QuestionRecord, words: ChatPhrases) -> list[Block]:
    """Return who may answer an open question, until when, and how besides the buttons."""
    name = asked.question.id
    if asked.status != "open":
        return [Block("soft", name)]
    who = words(f"asked_who_{asked.audience}")
    how = words(f"asked_reply_{_way(asked.question)}")
    until = words("asked_until", who=who, when=moment(asked.expires), how=how)
    return [Block("soft", f"{until}\n{name}")]


def _way(question: Question) -> str:
    if question.kind == "clarify":
        return "options" if question.options else "words"
    return question.kind


def _person(asked: QuestionRecord) -> Answer | None:
    """Return the answer if a person gave it."""
    answer = asked.answer
    return None if answer is None or answer.decision == "expired" else answer


def _by(answer: Answer, app_id: str, words: ChatPhrases) -> Block:
    return Block("ours", by_whom(answer, app_id, words))


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _element(block: Block) -> Element:
    match block.kind:
        case "ours":
            return markdown(block.text)
        case "code" | "diff":
            return markdown(_fenced(block))
        case _:
            return plain(block.text, soft=block.kind == "soft")


def _as_text(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown that calls nobody and fetches nothing."""
    return "\n\n".join(_line(block) for block in blocks)


def _line(block: Block) -> str:
    match block.kind:
        case "ours":
            return block.text.replace("<at id=", "<at user_id=")  # as texts want it
        case "code" | "diff":
            return _fenced(block)
        case _:
            return inert(block.text)


def _fenced(block: Block) -> str:
    """Return a code block that ends where it should, whatever stands in it."""
    code = inert(block.text).replace("```", "`\u200b`\u200b`")
    return f"```{'diff' if block.kind == 'diff' else ''}\n{code}\n```"
