"""Questions above the prompt, and their rows once they are answered."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from internal.channels.cli.command_output import short_id
from internal.channels.cli.open_question import OpenQuestion
from internal.channels.cli.records import LOCAL_PRINCIPAL
from internal.channels.cli.render.event_rows import EventRows
from internal.channels.cli.render.text import (
    Fragments,
    StyledLine,
    cell_width,
    ellipsize,
    plain_text,
    sanitize,
    truncate_line,
    wrap_line,
)
from internal.channels.cli.render.theme import Glyphs
from internal.i18n.call_summary import (
    describe_reason,
    describe_rules_briefly,
    summarize_calls,
    tool_label,
)
from internal.i18n.catalog import MessageCatalog
from internal.i18n.runs import RunMessages

_MAX_ROWS = 20
"""Rows of a command or a diff before `… 34 more`; Ctrl+O shows all."""
_DIFF_FILE = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)
_MAX_TITLE_WIDTH = 400
_INDENT: Fragments = (("", "  "),)
_MAX_SUMMARY_WIDTH = 60
_OUTCOMES = {("recovery", "approve"): "retry", ("recovery", "reject"): "give_up"}


class QuestionPanel:
    """Renders questions, in a language and with a set of glyphs."""

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs) -> None:
        self._messages = messages
        self._run_messages = RunMessages(messages.language)
        self._glyphs = glyphs

    def rows(
        self, question: OpenQuestion, width: int, max_rows: int, *, armed: bool
    ) -> list[Fragments]:
        """Return a question with its keys in at most `max_rows` rows, [] if they are too few.

        The keys are shown once they are `armed`.
        """
        head, *bodies = list(self._parts(question))
        keys = _rows(self.keys(question, width), width)
        left = max_rows - len(keys)
        if left < 2:  # noqa: PLR2004 - what is asked, and how much of it is not shown
            return []
        if question.drafting:
            bodies = []
        shown, hidden = _clipped([head, *bodies], width, min(left, _MAX_ROWS + len(bodies) + 1))
        if hidden:
            more = f"  {self._messages('more_rows', count=hidden)}"
            shown.append(
                (("class:faint", more if cell_width(more) <= width else ellipsize(more, width)),)
            )
        return [*shown, *(keys if armed else [()] * len(keys))]

    def lines(self, question: OpenQuestion) -> list[StyledLine]:
        """Return the whole question, and the command that answers it from another terminal."""
        command = self._messages("answer_with", id=short_id(question.id))
        return [
            *(line for part in self._parts(question) for line in part),
            StyledLine(_faint(command), _INDENT),
        ]

    def keys(self, question: OpenQuestion, width: int) -> list[StyledLine]:
        """Return the lines that explain the keys; they break between keys if possible."""
        if question.drafting:
            text = self._messages(f"writing_{question.drafting}")
            return [StyledLine(_faint(text), _INDENT, _INDENT)]
        lines: list[str] = []
        for key in self._key_labels(question):
            longer = f"{lines[-1]}  {key}" if lines else key
            if lines and cell_width(longer) <= width - cell_width(plain_text(_INDENT)):
                lines[-1] = longer
            else:
                lines.append(key)
        return [StyledLine((("class:need", line),), _INDENT, _INDENT) for line in lines]

    def _key_labels(self, question: OpenQuestion) -> Iterator[str]:
        messages, has_many = self._messages, len(question.calls) > 1
        match question.kind:
            case "plan":
                names = ["key_plan_yes", "key_plan_no", "key_plan_edit", "key_feedback"]
            case "clarify":
                names = ["key_mark" if question.multiple else "key_choose"]
                names = [*(names if question.digits else []), "key_words"]
            case "recovery":
                names = ["key_retry", "key_give_up", "key_advice"]
            case _:
                trusts = all(_action(call) == "trust" for call in question.calls)
                names = ["key_all" if has_many else "key_trust" if trusts else "key_once"]
                names += ["key_session", "key_rule"] if question.has_rules else []
                names += ["key_none" if has_many else "key_no", "key_because"]
                names += ["key_mark"] if question.digits else []
        rules = describe_rules_briefly(
            rule for call in question.calls for rule in call.get("rules", ())
        )
        for name in names:
            yield messages(name, last=question.digits, rules=rules)
        if question.selected:
            yield messages("key_enter", count=len(question.selected))

    def closed(
        self, question: OpenQuestion, answer: Mapping[str, Any], *, here: bool
    ) -> Iterator[StyledLine]:
        """Yield the lines of a closed question: its subject, the answer, and the person."""
        messages, decision = self._messages, str(answer["decision"])
        text = truncate_line(str(answer.get("text") or ""), _MAX_TITLE_WIDTH)
        if decision != "text":
            outcome = _OUTCOMES.get((question.kind, decision), decision)
            decision_text = messages(f"answer_{outcome}")
            if answer.get("items"):
                yes = sum(answer["items"].values())
                decision_text = messages("answer_some", count=yes, all=len(question.calls))
            elif decision == "approve" and answer.get("grant", "once") != "once":
                decision_text = messages(f"answer_{answer['grant']}")
            text = ": ".join(one for one in (decision_text, text) if one)
        style, glyph = self._mark(question, decision)
        who = "" if here or decision == "expired" else self._by(answer)
        arrow = self._glyphs.arrow
        yield StyledLine(
            (
                (style, glyph),
                (
                    "",
                    f" {truncate_line(self._title(question), _MAX_SUMMARY_WIDTH)}  {arrow} {text}",
                ),
                *(_faint(f" · {who}") if who else ()),
            ),
            rest=_INDENT,
        )
        if answer.get("items"):
            no = question.denied_calls(answer)
            for call in question.calls:
                yes = call["call_id"] not in no
                mark = (
                    ("class:ok", self._glyphs.ok) if yes else ("class:failed", self._glyphs.failed)
                )
                what = truncate_line(" ".join(_what(call)), _MAX_SUMMARY_WIDTH)
                yield StyledLine((mark, ("", f" {what}")), _INDENT, _INDENT)

    def _mark(self, question: OpenQuestion, decision: str) -> tuple[str, str]:
        if decision in {"reject", "expired"}:
            return "class:failed", self._glyphs.failed
        if question.kind == "approval":
            return "class:ok", self._glyphs.permission
        return (
            "class:accent",
            self._glyphs.plan if question.kind == "plan" else self._glyphs.question,
        )

    def _title(self, question: OpenQuestion) -> str:
        if question.kind == "plan" and (plan := question.view.get("plan")):
            return str(plan["goal"])
        if len(question.calls) == 1:
            return " ".join(_what(question.calls[0]))
        if question.calls:
            return self._summary(question)
        return self._run_messages.question_title(question.title, question.reason_code)

    def _summary(self, question: OpenQuestion) -> str:
        counts = Counter(map(_action, question.calls))
        return summarize_calls(self._messages, list(counts.items()))

    def _by(self, answer: Mapping[str, Any]) -> str:
        by = str(answer.get("name") or answer.get("by") or "")
        by = self._messages("you") if answer.get("by") == LOCAL_PRINCIPAL else by
        return self._messages(
            "answered_by", who=truncate_line(by, _MAX_SUMMARY_WIDTH), via=answer.get("via", "")
        )

    def _parts(self, question: OpenQuestion) -> Iterator[list[StyledLine]]:
        """Yield the head of a question, then the parts that may be shortened to fit."""
        head, *bodies = self._content(question)
        if question.asked_by:
            asks = f"{self._glyphs.subagent} {_flat(question.asked_by)}"
            head = [StyledLine(_faint(asks), rest=_INDENT), *head]
        yield head
        yield from bodies

    def _content(self, question: OpenQuestion) -> Iterator[list[StyledLine]]:
        glyphs, messages = self._glyphs, self._messages
        match question.kind:
            case "approval":
                yield from self._calls(question)
            case "plan":
                plan = question.view.get("plan") or {"goal": question.view["title"], "steps": ()}
                mark = (("class:need", f"{glyphs.plan} {messages('plan_asked')}  "),)
                yield [
                    StyledLine(
                        (("", truncate_line(str(plan["goal"]), _MAX_TITLE_WIDTH)),), mark, _INDENT
                    )
                ]
                yield [
                    StyledLine(
                        (("", _flat(step["description"])),), (("", f"  {n}. "),), (("", "     "),)
                    )
                    for n, step in enumerate(plan["steps"], 1)
                ]
                if plan.get("made_by") == "larkspur":
                    by = self._run_messages("plan_by_larkspur")
                    yield [StyledLine((("class:faint", by),), _INDENT, _INDENT)]
            case _:
                title = self._run_messages.question_title(question.title, question.reason_code)
                yield [
                    StyledLine(
                        (("", _flat(title)),), (("class:need", f"{glyphs.question} "),), _INDENT
                    )
                ]
                body = str(question.view.get("body") or "")
                if body.strip() and body.strip() != title.strip():
                    yield list(_text(body))
                yield [
                    StyledLine(
                        (("", _flat(option)),), (self._number(question, n),), (("", "    "),)
                    )
                    for n, option in enumerate(question.options, 1)
                ]

    def _calls(self, question: OpenQuestion) -> Iterator[list[StyledLine]]:
        mark, messages = f"{self._glyphs.permission} ", self._messages
        if len(question.calls) == 1:
            (call,) = question.calls
            first, *more = _what(call)
            head = (("class:need", f"{mark}{messages(f'ask_{_action(call)}')}  "),)
            yield [StyledLine((("class:strong", first),), head, _INDENT, verbatim=True)]
            yield [
                StyledLine((("class:strong", line),), _INDENT, _INDENT, verbatim=True)
                for line in more
            ]
            yield [self._why(call)]
            yield list(EventRows(messages, self._glyphs).change(str(call.get("diff") or "")))
            return
        title = self._summary(question)
        yield [StyledLine((("class:need", mark), ("class:strong", title)))]
        deep: Fragments = (("", "    "),)
        for n, call in enumerate(question.calls, 1):
            first, *more = _what(call)
            yield [
                StyledLine(
                    (("class:strong", first),), (self._number(question, n),), deep, verbatim=True
                ),
                *(
                    StyledLine((("class:strong", line),), deep, deep, verbatim=True)
                    for line in more
                ),
                self._why(call, deep),
                *EventRows(messages, self._glyphs).change(str(call.get("diff") or ""), deep),
            ]

    def _why(self, call: Mapping[str, Any], edge: Fragments = _INDENT) -> StyledLine:
        given = (str(call.get(name) or "") for name in ("reason_code", "reason_about", "reason"))
        tool, risk, reason = (
            truncate_line(text, _MAX_TITLE_WIDTH)
            for text in (
                tool_label(str(call["tool"]), str(call.get("title", ""))),
                str(call["risk"]),
                describe_reason(self._messages, *given),
            )
        )
        about = [risk, reason] if reason.startswith(tool) else [tool, risk, reason]
        if whole := call.get("whole"):
            about.append(self._messages("call_too_long", count=f"{whole['size']:,}"))
        return StyledLine(_faint(" · ".join(one for one in about if one)), edge, edge)

    def _number(self, question: OpenQuestion, n: int) -> tuple[str, str]:
        chosen = n in question.selected
        tick = (
            f"{self._glyphs.ok if chosen else ' '} " if question.multiple or question.calls else ""
        )
        return "class:ok" if chosen else "class:need", f"  {tick}{n} "


def _action(call: Mapping[str, Any]) -> str:
    """Return the action of a call; `use` for a question of an earlier version."""
    return str(call.get("action") or "use")


def _what(call: Mapping[str, Any]) -> list[str]:
    """Return the lines of a call; for a change whose diff follows, the file."""
    what, tool = str(call["what"]), str(call["tool"])
    named = _DIFF_FILE.search(str(call.get("diff") or ""))
    if named is not None and what.startswith((f"{tool}\n", f"{tool} {{")):
        what = named[1] if _action(call) in {"create", "change"} else f"{tool}  {named[1]}"
    return sanitize(what).rstrip().split("\n")


def _clipped(
    parts: Sequence[list[StyledLine]], width: int, max_rows: int
) -> tuple[list[Fragments], int]:
    """Return the rows of these parts and how many were left out, of the longest parts first."""
    drawn = [_rows(part, width) for part in parts if part]
    if sum(map(len, drawn)) <= max_rows:
        return [row for rows in drawn for row in rows], 0
    kept, left = [0] * len(drawn), max_rows - 1
    # one row of each part in turn, the head first, while rows are left
    while left:
        for number, rows in enumerate(drawn):
            if left and kept[number] < len(rows):
                kept[number] += 1
                left -= 1
    hidden = sum(map(len, drawn)) - sum(kept)
    return [row for rows, most in zip(drawn, kept, strict=True) for row in rows[:most]], hidden


def _rows(lines: Sequence[StyledLine], width: int) -> list[Fragments]:
    return [row for line in lines for row in wrap_line(line, width)]


def _text(text: str) -> Iterator[StyledLine]:
    for line in sanitize(text).rstrip().split("\n"):
        yield StyledLine((("", line),), _INDENT, _INDENT)


def _flat(text: object) -> str:
    return " ".join(sanitize(str(text)).split())


def _faint(text: str) -> Fragments:
    return (("class:faint", text),)
