"""A question as people see it: a card with buttons, a rich text, a text. Pure.

An open question shows what is asked, who may answer and until when; one that is not open any more
shows what was decided and by whom, and nothing to press.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from internal.agent.domain.questions import Answer, ApprovalItem, Question, QuestionRecord
from internal.agent.domain.text import truncate_line
from internal.channels.chat.question_text import (
    answerer_name,
    channel_name,
    describe_outcome,
    format_time,
    is_allowed,
)
from internal.channels.lark.api import as_json
from internal.channels.lark.card_elements import Element, markdown, plain_text
from internal.channels.lark.message_format import (
    MAX_RICH_BYTES,
    MAX_TEXT_BYTES,
    MessagePart,
    Rendering,
    byte_length,
    neutralize_markup,
    post_part,
    text_parts,
)
from internal.channels.lark.question_form import MAX_CALLS, answer_controls, has_option_buttons
from internal.i18n.chat import ChatPhrases

QUESTION_MARK = "❓\u200b"
"""What a text begins with that asks, or tells what became of a question."""

_TEXT_LIMITS = (50_000, 6_000, 2_500, 1_000, 400, 150)
"""Characters of each text on a card: the first of these with which Lark takes the card."""
_MAX_LINES, _UNLIMITED = 60, 10**9
_RISKS = frozenset({"read", "write", "exec", "net"})
_OPEN_ID = re.compile(r"ou_[A-Za-z0-9_-]{1,80}")
_COLOURS = {"plan": "blue", "clarify": "turquoise", "approval": "orange"}


RenderedT = TypeVar("RenderedT", dict[str, Any], str)


class ContentBlock(NamedTuple):
    """A piece of what is shown: text, options, a remark, code, a diff, or Markdown of ours."""

    kind: Literal["text", "options", "soft", "code", "diff", "ours"]
    text: str


class TextBudget:
    """How much is shown of each text and of the calls; `cut`: something was left out."""

    def __init__(self, most: int, words: ChatPhrases, *, whole: bool = False) -> None:
        self._most, self._words = most, words
        self._lines, self.calls = (_UNLIMITED, _UNLIMITED) if whole else (_MAX_LINES, MAX_CALLS)
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
    return _render_within_limit(partial(_card, asked, words, app_id), words)[0]


def render_question(asked: QuestionRecord, words: ChatPhrases, app_id: str) -> Sequence[Rendering]:
    """Return the forms of a question, the best first; what a card cannot hold comes as a file."""
    card, cut = _render_within_limit(partial(_card, asked, words, app_id), words)
    parts = [MessagePart("interactive", as_json(card))]
    if cut:
        whole = _blocks_markdown(
            _content_blocks(asked, words, app_id, TextBudget(_UNLIMITED, words, whole=True))
        )
        file = (words("asked_file_name"), whole.encode("utf-8", "replace"))
        parts.append(MessagePart("file", "", file, spare=True))
    text, _ = _render_within_limit(partial(_text, asked, words, app_id), words)
    return (
        ("card", tuple(parts)),
        ("post", (post_part(text),)),
        ("text", text_parts(text, MAX_TEXT_BYTES)),
    )


def render_outcome(asked: QuestionRecord, words: ChatPhrases, app_id: str) -> Sequence[Rendering]:
    """Return the forms of a short message about a question whose card cannot be replaced."""
    said = describe_outcome(asked, words).text
    about = truncate_line(asked.question.title, 200)
    news = [ContentBlock("text", f"{QUESTION_MARK} {said}: {about}")]
    if (answer := _personal_answer(asked)) is not None:
        news.append(_answerer_block(answer, app_id, words))
    text = _blocks_markdown([*news, *_footer_blocks(asked, words)])
    return (("post", (post_part(text),)), ("text", text_parts(text, MAX_TEXT_BYTES)))


def _render_within_limit(
    draw: Callable[[TextBudget], RenderedT], words: ChatPhrases
) -> tuple[RenderedT, bool]:
    """Draw in the first room with which Lark takes it; say whether something was left out."""
    for most in _TEXT_LIMITS:
        room = TextBudget(most, words)
        drawn = draw(room)
        if byte_length(as_json(as_json(drawn))) <= MAX_RICH_BYTES:
            return drawn, room.cut
    smallest = TextBudget(_TEXT_LIMITS[-1], words)
    return draw(smallest), smallest.cut


def _text(asked: QuestionRecord, words: ChatPhrases, app_id: str, room: TextBudget) -> str:
    shown = _content_blocks(asked, words, app_id, room)
    blocks = [ContentBlock("text", _title(asked, words)), *shown, *_footer_blocks(asked, words)]
    return f"{QUESTION_MARK} {_blocks_markdown(blocks)}"


def _card(
    asked: QuestionRecord, words: ChatPhrases, app_id: str, room: TextBudget
) -> dict[str, Any]:
    blocks = _content_blocks(asked, words, app_id, room)
    if asked.status == "open" and has_option_buttons(asked.question):
        blocks = [block for block in blocks if block.kind != "options"]
    elements = [_element(block) for block in blocks]
    if room.cut:
        elements.append(plain_text(words("asked_whole"), soft=True))
    if asked.status == "open":
        elements += answer_controls(asked.question, words)
    elements += [_element(block) for block in _footer_blocks(asked, words)]
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
    said, colour = describe_outcome(asked, words)
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


def _content_blocks(
    asked: QuestionRecord, words: ChatPhrases, app_id: str, room: TextBudget
) -> list[ContentBlock]:
    """Return what is asked and, when it is over, what became of it."""
    found = _subject_blocks(asked, words, room)
    if (answer := _personal_answer(asked)) is None:
        return found
    return [*found, *_decision_blocks(answer, words, room), _answerer_block(answer, app_id, words)]


def _subject_blocks(
    asked: QuestionRecord, words: ChatPhrases, room: TextBudget
) -> list[ContentBlock]:
    match asked.question.kind:
        case "plan":
            return _plan_blocks(asked.question, words, room)
        case "clarify":
            return _clarify_blocks(asked.question, room)
        case "approval":
            return _approval_blocks(asked, words, room)


def _plan_blocks(question: Question, words: ChatPhrases, room: TextBudget) -> list[ContentBlock]:
    plan = question.plan
    if plan is None:
        return [ContentBlock("text", room.fit(question.title))]
    goal = words("asked_goal", goal=room.fit(plan.goal))
    steps = _numbered([step.description for step in plan.steps])
    return [ContentBlock("text", goal), ContentBlock("text", room.fit(steps))]


def _clarify_blocks(question: Question, room: TextBudget) -> list[ContentBlock]:
    found = [
        ContentBlock("text", room.fit(text)) for text in (question.title, question.body) if text
    ]
    options = _numbered([room.fit(option) for option in question.options])
    return [*found, ContentBlock("options", options)] if options else found


def _approval_blocks(
    asked: QuestionRecord, words: ChatPhrases, room: TextBudget
) -> list[ContentBlock]:
    calls, answer = asked.question.calls, _personal_answer(asked)
    found: list[ContentBlock] = []
    for number, call in enumerate(calls[: room.calls], 1):
        mark = "" if answer is None else ("✓ " if is_allowed(answer, call.call_id) else "✗ ")
        place = f"{number}. " if len(calls) > 1 else ""
        found += _call_blocks(call, f"{mark}{place}", words, room)
    if (left := len(calls) - room.calls) > 0:
        room.cut = True
        found.append(ContentBlock("text", words("asked_more_calls", count=left)))
    return found


def _call_blocks(
    call: ApprovalItem, mark: str, words: ChatPhrases, room: TextBudget
) -> list[ContentBlock]:
    does, tool = words.tool(call.tool), truncate_line(call.tool, 60)
    found = [
        ContentBlock("text", f"{mark}{does} ({tool})"),
        ContentBlock("code", room.fit(call.what)),
    ]
    if call.whole is not None:
        found.append(ContentBlock("text", words("asked_too_long", count=f"{call.whole.size:,}")))
    if call.diff:
        found.append(ContentBlock("diff", room.fit(call.diff)))
    risk = words(f"risk_{call.risk}" if call.risk in _RISKS else "risk_other")
    why = truncate_line(call.reason, 300)
    found.append(ContentBlock("soft", words("asked_why", risk=risk, why=why) if why else risk))
    return found


def _decision_blocks(answer: Answer, words: ChatPhrases, room: TextBudget) -> list[ContentBlock]:
    """Return what a person said besides yes or no."""
    found: list[ContentBlock] = []
    if answer.edit is not None:
        steps = room.fit(_numbered(answer.edit.steps))
        found.append(ContentBlock("text", words("asked_new_steps", steps=steps)))
    if answer.text.strip():
        found.append(ContentBlock("text", f"“{room.fit(answer.text.strip())}”"))
    if answer.rules:
        rules = room.fit(", ".join(answer.rules))
        found.append(ContentBlock("soft", words("asked_rules_written", rules=rules)))
    return found


def _footer_blocks(asked: QuestionRecord, words: ChatPhrases) -> list[ContentBlock]:
    """Return who may answer an open question, until when, and how besides the buttons."""
    name = asked.question.id
    if asked.status != "open":
        return [ContentBlock("soft", name)]
    who = words(f"asked_who_{asked.audience}")
    how = words(f"asked_reply_{_reply_hint(asked.question)}")
    until = words("asked_until", who=who, when=format_time(asked.expires), how=how)
    return [ContentBlock("soft", f"{until}\n{name}")]


def _reply_hint(question: Question) -> str:
    if question.kind == "clarify":
        return "options" if question.options else "words"
    return question.kind


def _personal_answer(asked: QuestionRecord) -> Answer | None:
    """Return the answer if a person gave it."""
    answer = asked.answer
    return None if answer is None or answer.decision == "expired" else answer


def _answerer_block(answer: Answer, app_id: str, words: ChatPhrases) -> ContentBlock:
    """Return who answered, through which channel and when; a user of this app as a mention."""
    open_id = answer.by.removeprefix(f"lark:{app_id}:")
    name = re.sub(r"[^\w .@-]", "", answerer_name(answer, words))  # no Markdown
    who = f"<at id={open_id}></at>" if _OPEN_ID.fullmatch(open_id) else name
    via, when = channel_name(answer, words), format_time(answer.at)
    return ContentBlock("ours", words("asked_by", who=who, via=via, when=when))


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _element(block: ContentBlock) -> Element:
    match block.kind:
        case "ours":
            return markdown(block.text)
        case "code" | "diff":
            return markdown(_fenced(block))
        case _:
            return plain_text(block.text, soft=block.kind == "soft")


def _blocks_markdown(blocks: Sequence[ContentBlock]) -> str:
    """Return the blocks as Markdown that calls nobody and fetches nothing."""
    return "\n\n".join(_block_markdown(block) for block in blocks)


def _block_markdown(block: ContentBlock) -> str:
    match block.kind:
        case "ours":
            return block.text.replace("<at id=", "<at user_id=")  # as texts want it
        case "code" | "diff":
            return _fenced(block)
        case _:
            return neutralize_markup(block.text)


def _fenced(block: ContentBlock) -> str:
    """Return a code block that ends where it should, whatever stands in it."""
    code = neutralize_markup(block.text).replace("```", "`\u200b`\u200b`")
    return f"```{'diff' if block.kind == 'diff' else ''}\n{code}\n```"
