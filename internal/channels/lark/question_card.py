"""Questions as people see them: a card with buttons, a rich text, a text. Pure.

An open question shows its content, who can answer and until when; a settled one shows the decision
and who made it, without controls.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from internal.agent.domain.questions import (
    Answer,
    ApprovalItem,
    Question,
    QuestionRecord,
    count_actions,
)
from internal.agent.domain.text import truncate_line
from internal.channels.chat.question_text import (
    answerer_name,
    channel_name,
    describe_outcome,
    format_time,
    is_allowed,
    with_asker,
)
from internal.channels.chat.transport import AskedElsewhere, CopyFor
from internal.channels.lark.api import as_json
from internal.channels.lark.lark_markdown import escape_active, escape_links, fence
from internal.channels.lark.message_format import (
    MAX_RICH_BYTES,
    MAX_TEXT_BYTES,
    MessagePart,
    PostElement,
    Rendering,
    byte_length,
    card_json,
    post_part,
    text_parts,
)
from internal.channels.lark.question_form import (
    MAX_CALLS,
    Element,
    answer_controls,
    has_option_buttons,
    markdown,
    plain_text,
)
from internal.i18n.call_summary import describe_reason, summarize_calls
from internal.i18n.chat import ChatPhrases

QUESTION_MARK = "❓\u200b"
"""Marks texts that ask a question or report its outcome."""

_TEXT_LIMITS = (50_000, 6_000, 2_500, 1_000, 400, 150)
"""Characters of each text on a card; the largest limit that fits Lark's size limit is used."""
_SUMMARY_CHARS = 100
_MAX_NAME, _MAX_TASK = 60, 300
_MAX_LINES, _UNLIMITED = 60, 10**9
_ENDS_FENCES = "```"
"""Code with these marks is shown as plain text: nothing in a call may end its code block."""
_RISKS = frozenset({"read", "write", "exec", "net"})
_OPEN_ID = re.compile(r"ou_[A-Za-z0-9_-]{1,80}")
_MENTION = re.compile(r"<at id=(ou_[A-Za-z0-9_-]{1,80})></at>")
_COLOURS = {"plan": "blue", "clarify": "turquoise", "approval": "orange", "recovery": "red"}


Reach = AskedElsewhere | CopyFor | None
RenderedT = TypeVar("RenderedT", dict[str, Any], str, list[list[PostElement]])


class ContentBlock(NamedTuple):
    """A block: text, options, a remark, code, a diff, the bot's own Markdown, or a link.

    The text of a link is its address and, after a line break, its words.
    """

    kind: Literal["text", "options", "remark", "code", "diff", "trusted", "link"]
    text: str


class TextBudget:
    """Limits the length of texts and the number of calls. `cut`: something was left out."""

    def __init__(self, max_length: int, phrases: ChatPhrases, *, unlimited: bool = False) -> None:
        self._max_length, self._phrases = max_length, phrases
        self._lines, self.calls = (_UNLIMITED, _UNLIMITED) if unlimited else (_MAX_LINES, MAX_CALLS)
        self.cut = False

    def fit(self, text: str) -> str:
        """Return the text, or its first lines with the number of omitted ones."""
        shown = "\n".join(text.split("\n", self._lines)[: self._lines])
        if len(shown) > self._max_length:
            shown = shown[: self._max_length].rpartition("\n")[0] or shown[: self._max_length]
        left = text[len(shown) :]
        if not left:
            return text
        self.cut = True
        whole_lines, count = left.startswith("\n"), left.count("\n")
        phrase = "asked_more_lines" if whole_lines else "asked_more_characters"
        return f"{shown}\n{self._phrases(phrase, count=count if whole_lines else len(left))}"


def question_card(record: QuestionRecord, phrases: ChatPhrases, app_id: str) -> dict[str, Any]:
    """Return the card of a question in its current state."""
    return _render_within_limit(partial(_card, record, phrases, app_id, reach=None), phrases)[0]


def render_question(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, *, reach: Reach = None
) -> Sequence[Rendering]:
    """Return the renderings of a question, the best first; omitted content is attached."""
    card, cut = _render_within_limit(partial(_card, record, phrases, app_id, reach=reach), phrases)
    parts = [MessagePart("interactive", as_json(card))]
    if cut:
        budget = TextBudget(_UNLIMITED, phrases, unlimited=True)
        whole = _file_text(_content_blocks(record, phrases, app_id, budget))
        file = (phrases("asked_file_name"), whole.encode("utf-8", "replace"))
        parts.append(MessagePart("file", "", file, spare=True))
    rows, _ = _render_within_limit(partial(_post, record, phrases, app_id, reach=reach), phrases)
    text, _ = _render_within_limit(partial(_text, record, phrases, app_id, reach=reach), phrases)
    return (
        ("card", tuple(parts)),
        ("post", (post_part(rows),)),
        ("text", text_parts(text, MAX_TEXT_BYTES)),
    )


def render_outcome(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str
) -> Sequence[Rendering]:
    """Return a short message about a question whose card cannot be replaced."""
    outcome = describe_outcome(record, phrases).text
    question = record.question
    title = phrases.runs.question_title(question.title, question.reason_code)
    about = truncate_line(with_asker(title, question, phrases), 200)
    blocks = [ContentBlock("text", f"{QUESTION_MARK} {outcome}: {about}")]
    if (answer := _personal_answer(record)) is not None:
        blocks.append(_answerer_block(answer, app_id, phrases))
    blocks += _footer_blocks(record, phrases, None)
    text = _message_text(blocks)
    return (("post", (post_part(_post_rows(blocks)),)), ("text", text_parts(text, MAX_TEXT_BYTES)))


def _render_within_limit(
    render: Callable[[TextBudget], RenderedT], phrases: ChatPhrases
) -> tuple[RenderedT, bool]:
    """Render with the largest limit that Lark accepts; also return if text is omitted."""
    for max_length in _TEXT_LIMITS:
        budget = TextBudget(max_length, phrases)
        rendered = render(budget)
        if byte_length(as_json(as_json(rendered))) <= MAX_RICH_BYTES:
            return rendered, budget.cut
    smallest = TextBudget(_TEXT_LIMITS[-1], phrases)
    return render(smallest), smallest.cut


def _post(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget, *, reach: Reach
) -> list[list[PostElement]]:
    return _post_rows(_message_blocks(record, phrases, app_id, budget, reach=reach))


def _text(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget, *, reach: Reach
) -> str:
    return _message_text(_message_blocks(record, phrases, app_id, budget, reach=reach))


def _message_blocks(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget, *, reach: Reach
) -> list[ContentBlock]:
    return [
        ContentBlock("text", f"{QUESTION_MARK} {_title(record, phrases)}"),
        *_task_blocks(reach, phrases),
        *_content_blocks(record, phrases, app_id, budget),
        *_footer_blocks(record, phrases, reach),
    ]


def _card(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget, *, reach: Reach
) -> dict[str, Any]:
    blocks = [*_task_blocks(reach, phrases), *_content_blocks(record, phrases, app_id, budget)]
    can_answer = record.status == "open" and not isinstance(reach, AskedElsewhere)
    if can_answer and has_option_buttons(record.question):
        blocks = [block for block in blocks if block.kind != "options"]
    elements = [_element(block) for block in blocks]
    if budget.cut:
        elements.append(plain_text(phrases("asked_whole"), soft=True))
    if can_answer:
        elements += answer_controls(record.question, phrases)
    elements += [_element(block) for block in _footer_blocks(record, phrases, reach)]
    return card_json(elements, _summary(record, phrases)) | {"header": _header(record, phrases)}


def _header(record: QuestionRecord, phrases: ChatPhrases) -> Element:
    title: Element = {"tag": "plain_text", "content": _title(record, phrases)}
    if record.status == "open":
        return {"title": title, "template": _COLOURS[record.question.kind]}
    outcome, colour = describe_outcome(record, phrases)
    return {
        "title": {"tag": "plain_text", "content": outcome},
        "subtitle": title,
        "template": colour,
    }


def _summary(record: QuestionRecord, phrases: ChatPhrases) -> str:
    """Return what is asked, or how it was settled, in one line."""
    question = record.question
    if record.status != "open":
        asked = describe_outcome(record, phrases).text
    else:
        asked = _title(record, phrases)
    subject = phrases.runs.question_title(question.title, question.reason_code)
    if question.plan is not None:
        subject = question.plan.goal
    elif len(question.calls) == 1 and question.calls[0].action != "use":
        subject = ""  # the title names it
    elif question.calls:
        subject = f"{phrases.tool(question.calls[0].tool)}: {question.calls[0].what}"
    return truncate_line(f"{asked} {subject}".rstrip(), _SUMMARY_CHARS)


def _title(record: QuestionRecord, phrases: ChatPhrases) -> str:
    return with_asker(_own_title(record.question, phrases), record.question, phrases)


def _own_title(question: Question, phrases: ChatPhrases) -> str:
    if question.kind != "approval":
        return phrases(f"asked_{question.kind}")
    if len(question.calls) != 1:
        return summarize_calls(phrases, count_actions(question.calls))
    (call,) = question.calls
    subject = call.subject if call.action != "use" else phrases.tool(call.tool)
    return phrases(f"calls_{call.action}_what", subject=subject)


def _content_blocks(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget
) -> list[ContentBlock]:
    """Return the question and, once settled, its decision."""
    found = _subject_blocks(record, phrases, budget)
    if (answer := _personal_answer(record)) is None:
        return found
    return [
        *found,
        *_decision_blocks(answer, phrases, budget),
        _answerer_block(answer, app_id, phrases),
    ]


def _subject_blocks(
    record: QuestionRecord, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    match record.question.kind:
        case "plan":
            return _plan_blocks(record.question, phrases, budget)
        case "clarify" | "recovery":
            return _clarify_blocks(record.question, phrases, budget)
        case "approval":
            return _approval_blocks(record, phrases, budget)


def _plan_blocks(
    question: Question, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    plan = question.plan
    if plan is None:
        return [ContentBlock("text", budget.fit(question.title))]
    goal = phrases("asked_goal", goal=budget.fit(plan.goal))
    steps = _numbered([step.description for step in plan.steps])
    return [ContentBlock("text", goal), ContentBlock("text", budget.fit(steps))]


def _clarify_blocks(
    question: Question, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    title = phrases.runs.question_title(question.title, question.reason_code)
    found = [ContentBlock("text", budget.fit(text)) for text in (title, question.body) if text]
    options = _numbered([budget.fit(option) for option in question.options])
    return [*found, ContentBlock("options", options)] if options else found


def _approval_blocks(
    record: QuestionRecord, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    calls, answer = record.question.calls, _personal_answer(record)
    found: list[ContentBlock] = []
    for number, call in enumerate(calls[: budget.calls], 1):
        mark = "" if answer is None else ("✓ " if is_allowed(answer, call.call_id) else "✗ ")
        place = f"{number}. " if len(calls) > 1 else ""
        found += _call_blocks(call, f"{mark}{place}", phrases, budget)
    if (left := len(calls) - budget.calls) > 0:
        budget.cut = True
        found.append(ContentBlock("text", phrases("asked_more_calls", count=left)))
    return found


def _call_blocks(
    call: ApprovalItem, mark: str, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    does, tool = phrases.tool(call.tool), truncate_line(call.tool, 60)
    found = [
        ContentBlock("text", f"{mark}{does} ({tool})"),
        ContentBlock("code", budget.fit(call.what)),
    ]
    if call.whole is not None:
        found.append(ContentBlock("text", phrases("asked_too_long", count=f"{call.whole.size:,}")))
    if call.diff:
        found.append(ContentBlock("diff", budget.fit(call.diff)))
    risk = phrases(f"risk_{call.risk}" if call.risk in _RISKS else "risk_other")
    reason = describe_reason(phrases, call.reason_code, call.reason_about, call.reason)
    why = truncate_line(reason, 300)
    found.append(ContentBlock("remark", phrases("asked_why", risk=risk, why=why) if why else risk))
    return found


def _decision_blocks(
    answer: Answer, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    """Return the details of a decision: edits, reason and rules."""
    found: list[ContentBlock] = []
    if answer.edit is not None:
        steps = budget.fit(_numbered(answer.edit.steps))
        found.append(ContentBlock("text", phrases("asked_new_steps", steps=steps)))
    if answer.text.strip():
        found.append(ContentBlock("text", f"“{budget.fit(answer.text.strip())}”"))
    if answer.rules:
        rules = budget.fit(", ".join(answer.rules))
        found.append(ContentBlock("remark", phrases("asked_rules_written", rules=rules)))
    return found


def _task_blocks(reach: Reach, phrases: ChatPhrases) -> list[ContentBlock]:
    """Return what a copy for a person of another chat says about the task."""
    if not isinstance(reach, CopyFor):
        return []
    asker = truncate_line(reach.asker, _MAX_NAME) or phrases("asked_somebody")
    task = truncate_line(reach.task, _MAX_TASK)
    return [ContentBlock("text", phrases("asked_task_of", who=asker, task=task))]


def _elsewhere_blocks(
    record: QuestionRecord, phrases: ChatPhrases, reach: AskedElsewhere
) -> list[ContentBlock]:
    """Return who can answer a question that nobody in its chat may answer, and how to become one.

    If nobody else is asked, it is left to the owner, on the web page.
    """
    question, asked = record.question, len(record.question.recipients)
    audience, link = record.audience if asked else "owner", list[ContentBlock]()
    if not asked:
        how = phrases("asked_on_page")
        if reach.page:
            link = [ContentBlock("link", f"{reach.page}\n{phrases('asked_open_page')}")]
    elif len(reach.names) < asked:
        how = phrases("asked_sent_count", count=asked)
    else:
        names = (truncate_line(name, _MAX_NAME) for name in reach.names)
        how = phrases("asked_sent_to", who=phrases("calls_comma").join(names))
    who, when = phrases(f"asked_who_{audience}"), format_time(record.expires)
    until = phrases("asked_until", who=who, when=when, how=how)
    pairing = "asked_pair_owner" if record.audience == "owner" else "asked_pair"
    pair = phrases(pairing, command=phrases.command("pair"))
    return [*link, ContentBlock("remark", f"{until}\n{pair}\n{question.id}")]


def _footer_blocks(
    record: QuestionRecord, phrases: ChatPhrases, reach: Reach
) -> list[ContentBlock]:
    """Return who can answer an open question, until when, and how to reply."""
    name = record.question.id
    if record.status != "open":
        return [ContentBlock("remark", name)]
    if isinstance(reach, AskedElsewhere):
        return _elsewhere_blocks(record, phrases, reach)
    who = phrases(f"asked_who_{record.audience}")
    how = phrases(f"asked_reply_{_reply_hint(record.question)}")
    until = phrases("asked_until", who=who, when=format_time(record.expires), how=how)
    return [ContentBlock("remark", f"{until}\n{name}")]


def _reply_hint(question: Question) -> str:
    if question.kind == "clarify":
        return "options" if question.options else "words"
    return question.kind


def _personal_answer(record: QuestionRecord) -> Answer | None:
    """Return the answer unless the question expired."""
    answer = record.answer
    return None if answer is None or answer.decision == "expired" else answer


def _answerer_block(answer: Answer, app_id: str, phrases: ChatPhrases) -> ContentBlock:
    """Return who answered, through which channel and when; a user of this app as a mention."""
    open_id = answer.by.removeprefix(f"lark:{app_id}:")
    name = re.sub(r"[^\w .@-]", "", answerer_name(answer, phrases))  # no Markdown
    who = f"<at id={open_id}></at>" if _OPEN_ID.fullmatch(open_id) else name
    via, when = channel_name(answer, phrases), format_time(answer.at)
    return ContentBlock("trusted", phrases("asked_by", who=who, via=via, when=when))


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _element(block: ContentBlock) -> Element:
    match block.kind:
        case "trusted":
            return markdown(block.text)
        case "link":
            address, words = block.text.split("\n")
            return markdown(f"[{words}]({address})")
        case "code" | "diff" if _ENDS_FENCES not in block.text:
            return markdown(fence(block.text, _language(block)))
        case _:
            return plain_text(block.text, soft=block.kind == "remark")


def _post_rows(blocks: Sequence[ContentBlock]) -> list[list[PostElement]]:
    """Return the blocks as paragraphs of a rich text."""
    return [_post_row(block) for block in blocks]


def _post_row(block: ContentBlock) -> list[PostElement]:
    match block.kind:
        case "trusted":
            parts = enumerate(_MENTION.split(block.text))  # odd ones are open_ids
            return [
                {"tag": "at", "user_id": part} if number % 2 else {"tag": "text", "text": part}
                for number, part in parts
                if part
            ]
        case "code" | "diff":
            return [{"tag": "code_block", "text": block.text}]
        case "link":
            address, words = block.text.split("\n")
            return [{"tag": "a", "text": words, "href": address}]
        case _:
            return [{"tag": "text", "text": escape_active(block.text)}]


def _message_text(blocks: Sequence[ContentBlock]) -> str:
    """Return the blocks as a text message without active tags and links but the bot's own."""
    return "\n\n".join(_plain(block) for block in blocks)


def _plain(block: ContentBlock) -> str:
    match block.kind:
        case "trusted":
            return block.text.replace("<at id=", "<at user_id=")  # the syntax of texts
        case "link":
            return ": ".join(reversed(block.text.split("\n")))
        case _:
            return escape_links(escape_active(_source(block)))


def _file_text(blocks: Sequence[ContentBlock]) -> str:
    return "\n\n".join(_source(block) for block in blocks)


def _source(block: ContentBlock) -> str:
    is_code = block.kind in {"code", "diff"}
    return fence(block.text, _language(block)) if is_code else block.text


def _language(block: ContentBlock) -> str:
    return "diff" if block.kind == "diff" else ""
