"""Rendering of questions as a card with buttons, a rich text, or a text. Pure.

The card of an open question shows each part once: the question, the exact text, the risk and the
buttons; the rest is folded. A settled one is a line with the decision and its author, which expands
to the question. Times on cards are in the time zone of each reader; texts, which cannot do that,
state the remaining time.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
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
    format_span,
    is_allowed,
    short_id,
    with_asker,
    withdrawn_by,
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
    markdown,
    more_panel,
    panel,
    plain_text,
    shows_options,
)
from internal.i18n.call_summary import describe_reason, is_mcp, summarize_calls
from internal.i18n.chat import ChatPhrases

QUESTION_MARK = "❓\u200b"
"""Marks texts that ask a question or report its outcome."""

_TEXT_LIMITS = (50_000, 6_000, 2_500, 1_000, 400, 150)
"""Characters of each text on a card; the largest limit that fits Lark's size limit is used."""
_SUMMARY_CHARS = 100
_MAX_NAME, _MAX_TASK = 60, 300
_MAX_LINES, _UNLIMITED = 60, 10**9
_FACE_LINES, _FACE_CHARS, _FACE_CALLS = 12, 600, 4
"""Limits of the exact texts on the face of a card, together, and of the calls: a phone shows that
without scrolling."""
_MIN_FACE_LINES, _MIN_FACE_CHARS = 3, 150
_MAX_LINE, _MAX_SAID = 100, 60
_MARK_PREFIX, _MARK_DIGITS = "question_", 11
"""The element_id of the first element of each card; Lark allows 20 characters."""
_OUTCOME_MARKS = {"green": "✓", "red": "✗", "blue": "✎", "grey": "○"}
_MARKUP = re.compile(r"[&<>*_~`\[\]()!#|\\$]|:(?=//)")
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

    The text of a link is its address and, after a line break, its words. A `hint` is Markdown of
    the bot itself as well, in small letters.
    """

    kind: Literal["text", "options", "remark", "code", "diff", "trusted", "hint", "link"]
    text: str


class TextBudget:
    """Limits the length of texts and the number of calls. `cut`: something was left out."""

    def __init__(
        self,
        max_length: int,
        phrases: ChatPhrases,
        *,
        lines: int = _MAX_LINES,
        calls: int = MAX_CALLS,
    ) -> None:
        self._max_length, self._phrases = max_length, phrases
        self._lines, self.calls = lines, calls
        self.cut = False

    def for_face(self, count: int) -> "TextBudget":
        """Return the budget of each of this many texts on the face of a card."""
        lines = max(_MIN_FACE_LINES, _FACE_LINES // count)
        length = min(self._max_length, max(_MIN_FACE_CHARS, _FACE_CHARS // count))
        return TextBudget(length, self._phrases, lines=lines)

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
        budget = TextBudget(_UNLIMITED, phrases, lines=_UNLIMITED, calls=_UNLIMITED)
        whole = _file_text(_content_blocks(record, phrases, app_id, budget))
        file = (phrases("asked_file_name"), whole.encode("utf-8", "replace"))
        parts.append(MessagePart("file", "", file, spare=True))
    rows, _ = _render_within_limit(partial(_post, record, phrases, app_id, reach=reach), phrases)
    text, _ = _render_within_limit(partial(_text, record, phrases, app_id, reach=reach), phrases)
    plain = partial(_card, record, phrases, app_id, reach=reach, is_plain=True)
    plain_card, _ = _render_within_limit(plain, phrases)
    return (
        ("card", tuple(parts)),
        ("plain-card", (MessagePart("interactive", as_json(plain_card)),)),
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
    record: QuestionRecord,
    phrases: ChatPhrases,
    app_id: str,
    budget: TextBudget,
    *,
    reach: Reach,
    is_plain: bool = False,
) -> dict[str, Any]:
    """Return a card. A plain one has no panel, form or local time, only texts and buttons."""
    if record.status != "open":
        return _settled_card(record, phrases, app_id, budget)
    question, can_answer = record.question, not isinstance(reach, AskedElsewhere)
    face, folded = _open_blocks(record, phrases, budget)
    if can_answer and shows_options(question):
        face = [block for block in face if block.kind != "options"]
    when = "" if is_plain else _local_time(record.expires)
    if isinstance(reach, AskedElsewhere):
        who, how = _elsewhere_blocks(record, phrases, reach, when=when)
        face, folded = [*face, *who], [*folded, *how]
    elements = [_element(block) for block in [*_task_blocks(reach, phrases), *face]]
    more = [_element(block) for block in folded]
    if budget.cut:
        elements.append(plain_text(phrases("asked_whole"), soft=True))
    if can_answer:
        controls = answer_controls(question, phrases)
        elements += [each for each in controls.face if not (is_plain and each["tag"] == "form")]
        more += controls.folded
        more.append(_element(_audience_block(record, phrases, when=when)))
    elements += more[-1:] if is_plain else [more_panel(more, phrases("asked_more"))]
    elements[0] = elements[0] | {"element_id": card_mark(question.id)}
    title = {"tag": "plain_text", "content": _title(record, phrases)}
    header = {"title": title, "template": _COLOURS[question.kind]}
    return card_json(elements, _summary(record, phrases)) | {"header": header}


def _settled_card(
    record: QuestionRecord, phrases: ChatPhrases, app_id: str, budget: TextBudget
) -> dict[str, Any]:
    """Return a line with the decision, which expands to the question."""
    title = {"tag": "markdown", "content": _settled_line(record, phrases, app_id)}
    blocks = _content_blocks(record, phrases, app_id, budget, on_card=True)
    elements = [_element(block) for block in blocks]
    if budget.cut:
        elements.append(plain_text(phrases("asked_whole"), soft=True))
    line = panel(title, elements, card_mark(record.question.id))
    return card_json([line], _summary(record, phrases))


def _settled_line(record: QuestionRecord, phrases: ChatPhrases, app_id: str) -> str:
    """Return the decision, its subject and its author as one line of Markdown."""
    question, answer = record.question, _personal_answer(record)
    outcome, color = describe_outcome(record, phrases)
    who = "" if answer is None else _mention(answer, app_id, phrases)
    if answer is not None and answer.withdrawn:
        outcome, who = withdrawn_by(who, phrases), ""
    else:
        outcome = f"**{outcome}**"
    about = with_asker(_line_subject(question, phrases), question, phrases)
    parts = [f"{_OUTCOME_MARKS[color]} {outcome}", escape_markup(truncate_line(about, _MAX_LINE))]
    if answer is not None and question.kind == "clarify" and answer.text.strip():
        parts.append(escape_markup(f"“{truncate_line(answer.text.strip(), _MAX_SAID)}”"))
    line = " · ".join(filter(None, parts))
    return phrases("asked_line_by", what=line, who=who) if who else line


def _line_subject(question: Question, phrases: ChatPhrases) -> str:
    if question.plan is not None:
        return question.plan.goal
    if question.kind == "approval":
        return _statement(_approval_title(question, phrases))
    return phrases.runs.question_title(question.title, question.reason_code)


def _statement(title: str) -> str:
    """Return the title of a question without its question mark."""
    return title.rstrip("?\uff1f")


def card_mark(question_id: str) -> str:
    """Return the element_id that the card of a question has; it grants nothing."""
    digest = hashlib.sha256(question_id.encode()).hexdigest()
    return f"{_MARK_PREFIX}{digest[:_MARK_DIGITS]}"


def is_question_card(card: Mapping[str, Any]) -> bool:
    """Return True for a card with a question or its outcome."""
    body = card.get("body")
    elements = body.get("elements") if isinstance(body, dict) else None
    first = elements[0] if isinstance(elements, list) and elements else None
    mark = first.get("element_id") if isinstance(first, dict) else None
    return isinstance(mark, str) and mark.startswith(_MARK_PREFIX)


def escape_markup(text: str) -> str:
    """Return Markdown of a card that shows a text as it is."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)


def _local_time(instant: str) -> str:
    """Return an RFC 3339 instant in the language and the time zone of each reader of a card.

    Source: open.feishu.cn, "Rich text (Markdown) component".
    """
    try:
        milliseconds = int(datetime.fromisoformat(instant).timestamp() * 1000)
    except ValueError:
        return ""
    return " ".join(
        f"<local_datetime millisecond='{milliseconds}' format_type='{form}'></local_datetime>"
        for form in ("date_short", "time")
    )


def _summary(record: QuestionRecord, phrases: ChatPhrases) -> str:
    """Return the question or its outcome in one line."""
    question = record.question
    if record.status != "open":
        asked = describe_outcome(record, phrases).text
    elif question.kind == "approval":
        asked = with_asker(_approval_title(question, phrases), question, phrases)
    else:
        asked = _title(record, phrases)
    subject = phrases.runs.question_title(question.title, question.reason_code)
    if question.plan is not None:
        subject = question.plan.goal
    elif record.status != "open" and question.calls:
        subject = _line_subject(question, phrases)
    elif len(question.calls) == 1 and question.calls[0].action != "use":
        subject = ""  # the title names it
    elif question.calls:
        first = question.calls[0]
        subject = f"{phrases.tool(first.tool, first.title)}: {first.what}"
    return truncate_line(f"{asked} {subject}".rstrip(), _SUMMARY_CHARS)


def _title(record: QuestionRecord, phrases: ChatPhrases) -> str:
    return with_asker(_own_title(record.question, phrases), record.question, phrases)


def _own_title(question: Question, phrases: ChatPhrases) -> str:
    if question.kind != "approval":
        return phrases(f"asked_{question.kind}")
    # the command is the next thing to read
    if len(question.calls) == 1 and question.calls[0].action == "run":
        return phrases("calls_run_this")
    return _approval_title(question, phrases)


def _approval_title(question: Question, phrases: ChatPhrases) -> str:
    if len(question.calls) != 1:
        return summarize_calls(phrases, count_actions(question.calls))
    return _call_title(question.calls[0], phrases)


def _call_title(call: ApprovalItem, phrases: ChatPhrases) -> str:
    tool = phrases.tool(call.tool, call.title)
    subject = tool if call.action == "use" else call.subject or tool
    return phrases(f"calls_{call.action}_what", subject=subject)


def _open_blocks(
    record: QuestionRecord, phrases: ChatPhrases, budget: TextBudget
) -> tuple[list[ContentBlock], list[ContentBlock]]:
    """Return the visible blocks and the folded blocks of an open card."""
    if record.question.kind != "approval":
        return _subject_blocks(record, phrases, budget), []
    calls, face, folded = record.question.calls, list[ContentBlock](), list[ContentBlock]()
    several = len(calls) > 1
    for number, call in enumerate(calls[: budget.calls], 1):
        short, mark = (
            budget.for_face(min(len(calls), _FACE_CALLS)),
            f"{number}. " if several else "",
        )
        blocks, is_shown = _face_blocks(call, mark, phrases, short), number <= _FACE_CALLS
        face += blocks if is_shown else []
        is_cut = short.cut or not is_shown
        if is_cut or call.diff:
            title = f"{mark}{_statement(_call_title(call, phrases))}" if several else ""
            folded += _whole_call_blocks(call, title, budget, is_cut=is_cut)
        folded.append(ContentBlock("remark", _call_remark(call, mark, phrases)))
    if (left := len(calls) - _FACE_CALLS) > 0:
        face.append(ContentBlock("text", phrases("asked_more_calls", count=left)))
    if len(calls) > budget.calls:
        budget.cut = True
    return face, folded


def _face_blocks(
    call: ApprovalItem, mark: str, phrases: ChatPhrases, budget: TextBudget
) -> list[ContentBlock]:
    """Return the exact text of a call and its risk, with its action if there are several."""
    exact = ContentBlock("code", budget.fit(call.what))
    if call.diff:
        exact = ContentBlock("diff", budget.fit(_without_names(call.diff, call.subject)))
    risk = _risk(call, phrases)
    if call.reason_code != "no_rule" and (why := _reason(call, phrases)):
        risk = phrases("asked_why", risk=risk, why=why)
    found = [exact]
    if mark and call.action != "run":
        found.insert(0, ContentBlock("text", f"{mark}{_statement(_call_title(call, phrases))}"))
    elif mark:
        found.insert(0, ContentBlock("text", f"{mark}{_statement(phrases('calls_run_this'))}"))
    if call.whole is not None:
        found.append(ContentBlock("text", phrases("asked_too_long", count=f"{call.whole.size:,}")))
    return [*found, ContentBlock("remark", risk)]


def _without_names(diff: str, subject: str) -> str:
    """Return a diff without its two lines with the name of the file that the title names."""
    old, _, rest = diff.partition("\n")
    new, _, changes = rest.partition("\n")
    is_named = bool(subject) and new.startswith("+++ ") and new.endswith(f"/{subject}")
    return changes if is_named and old.startswith("--- ") else diff


def _whole_call_blocks(
    call: ApprovalItem, title: str, budget: TextBudget, *, is_cut: bool
) -> list[ContentBlock]:
    """Return a call whose face is shortened, or whose face is the change that it makes."""
    found = [ContentBlock("text", title)] if title else []
    found.append(ContentBlock("code", budget.fit(call.what)))
    if call.diff and is_cut:
        found.append(ContentBlock("diff", budget.fit(call.diff)))
    return found


def _call_remark(call: ApprovalItem, mark: str, phrases: ChatPhrases) -> str:
    """Return which tool a call uses and why it needs approval."""
    text = f"{mark}{_named_tool(call, phrases)}"
    why = _reason(call, phrases)
    return phrases("asked_why", risk=text, why=why) if why else text


def _named_tool(call: ApprovalItem, phrases: ChatPhrases) -> str:
    """Return the action and the name of a tool; the text of a call names an MCP server's tool."""
    does = phrases.tool(call.tool, call.title)
    return does if is_mcp(call.tool) else f"{does} ({truncate_line(call.tool, 60)})"


def _risk(call: ApprovalItem, phrases: ChatPhrases) -> str:
    return phrases(f"risk_{call.risk}" if call.risk in _RISKS else "risk_other")


def _reason(call: ApprovalItem, phrases: ChatPhrases) -> str:
    reason = describe_reason(phrases, call.reason_code, call.reason_about, call.reason)
    return truncate_line(reason, 300)


def _content_blocks(
    record: QuestionRecord,
    phrases: ChatPhrases,
    app_id: str,
    budget: TextBudget,
    *,
    on_card: bool = False,
) -> list[ContentBlock]:
    """Return the question and, once settled, its decision."""
    found = _subject_blocks(record, phrases, budget)
    if (answer := _personal_answer(record)) is None:
        return found
    return [
        *found,
        *_decision_blocks(answer, phrases, budget),
        _answerer_block(answer, app_id, phrases, when=_local_time(answer.at) if on_card else ""),
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
    found = [ContentBlock("text", goal), ContentBlock("text", budget.fit(steps))]
    if plan.made_by == "larkspur":
        found.append(ContentBlock("text", phrases.runs("plan_by_larkspur")))
    return found


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
    found = [
        ContentBlock("text", f"{mark}{_named_tool(call, phrases)}"),
        ContentBlock("code", budget.fit(call.what)),
    ]
    if call.whole is not None:
        found.append(ContentBlock("text", phrases("asked_too_long", count=f"{call.whole.size:,}")))
    if call.diff:
        found.append(ContentBlock("diff", budget.fit(call.diff)))
    risk, why = _risk(call, phrases), _reason(call, phrases)
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
    """Return the line about the task in a copy for a person of another chat."""
    if not isinstance(reach, CopyFor):
        return []
    asker = truncate_line(reach.asker, _MAX_NAME) or phrases("asked_somebody")
    task = truncate_line(reach.task, _MAX_TASK)
    return [ContentBlock("text", phrases("asked_task_of", who=asker, task=task))]


def _elsewhere_blocks(
    record: QuestionRecord, phrases: ChatPhrases, reach: AskedElsewhere, *, when: str = ""
) -> tuple[list[ContentBlock], list[ContentBlock]]:
    """Return the blocks of a question that nobody in its chat may answer.

    They name the people who can answer, and the way to become one of them. If nobody else is asked,
    the owner answers on the web page. `when` is the Markdown of the time until which it is open, ""
    in a text.
    """
    asked = len(record.question.recipients)
    audience, found = record.audience if asked else "owner", list[ContentBlock]()
    if not asked:
        how = phrases("asked_on_page")
        if reach.page:
            link = f"{reach.page}\n{phrases('asked_open_page')}"
            found.append(ContentBlock("link", link))
    elif len(reach.names) < asked:
        how = phrases("asked_sent_count", count=asked)
    else:
        names = (truncate_line(name, _MAX_NAME) for name in reach.names)
        how = phrases("asked_sent_to", who=phrases("calls_comma").join(names))
    who = phrases(f"asked_who_{audience}")
    pairing = "asked_pair_owner" if record.audience == "owner" else "asked_pair"
    pair = phrases(pairing, command=phrases.command("pair"))
    found.append(_deadline_block(record, phrases, who, how=how, when=when))
    return found, [ContentBlock("remark", pair)]


def _footer_blocks(
    record: QuestionRecord, phrases: ChatPhrases, reach: Reach
) -> list[ContentBlock]:
    """Return who can answer an open question, until when, and how to reply, for a text."""
    if record.status != "open":
        return []
    code = short_id(record.question.id)
    if isinstance(reach, AskedElsewhere):
        who, how = _elsewhere_blocks(record, phrases, reach)
        return [*who, *how, ContentBlock("remark", phrases("asked_code_only", code=code))]
    code = phrases("asked_code", code=code)
    return [_audience_block(record, phrases), ContentBlock("remark", code)]


def _audience_block(
    record: QuestionRecord, phrases: ChatPhrases, *, when: str = ""
) -> ContentBlock:
    who = phrases(f"asked_who_{record.audience}")
    how = phrases(f"asked_reply_{_reply_hint(record.question)}")
    return _deadline_block(record, phrases, who, how=how, when=when)


def _deadline_block(
    record: QuestionRecord, phrases: ChatPhrases, who: str, *, how: str, when: str
) -> ContentBlock:
    if when:
        text = phrases("asked_until", who=who, when=when, how=escape_markup(how))
        return ContentBlock("hint", text)
    left = format_span(record.asked, record.expires, phrases)
    return ContentBlock("remark", phrases("asked_within", who=who, left=left, how=how))


def _reply_hint(question: Question) -> str:
    if question.kind == "clarify":
        return "options" if question.options else "words"
    return question.kind


def _personal_answer(record: QuestionRecord) -> Answer | None:
    """Return the answer unless the question expired."""
    answer = record.answer
    return None if answer is None or answer.decision == "expired" else answer


def _answerer_block(
    answer: Answer, app_id: str, phrases: ChatPhrases, *, when: str = ""
) -> ContentBlock:
    """Return who answered and through which channel, on a card also when."""
    who, via = _mention(answer, app_id, phrases), channel_name(answer, phrases)
    key = "asked_by_at" if when else "asked_by"
    return ContentBlock("trusted", phrases(key, who=who, via=via, when=when))


def _mention(answer: Answer, app_id: str, phrases: ChatPhrases) -> str:
    """Return who answered: a user of this app as a mention, others by name."""
    open_id = answer.by.removeprefix(f"lark:{app_id}:")
    name = re.sub(r"[^\w .@-]", "", answerer_name(answer, phrases))  # no Markdown
    return f"<at id={open_id}></at>" if _OPEN_ID.fullmatch(open_id) else name


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _element(block: ContentBlock) -> Element:
    match block.kind:
        case "trusted" | "hint":
            return markdown(block.text, soft=block.kind == "hint")
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
