"""Rows for events: user messages, tool calls, plans, results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from internal.channels.cli.artifact_files import find_local_file
from internal.channels.cli.records import LOCAL_PRINCIPAL, ChangedFileItem, format_size
from internal.channels.cli.render.text import (
    Fragments,
    StyledLine,
    cell_width,
    sanitize,
    truncate_line,
)
from internal.channels.cli.render.theme import Glyphs
from internal.i18n.call_summary import tool_label
from internal.i18n.catalog import MessageCatalog
from internal.i18n.quantities import format_cost, format_count, format_duration
from internal.i18n.runs import RunMessages
from internal.normal_forms.untrusted_marks import without_marks

_DESCRIPTIVE_ARGUMENTS = ("command", "path", "url", "pattern", "query", "title", "instruction")
"""The arguments that describe a call best, in order of preference."""
_QUOTED_ARGUMENTS = {"pattern", "query"}
_MAX_ROW_WIDTH = 100
_MAX_NAME_WIDTH = 24
_MAX_DIFF_LINES = 20
_MAX_CALL_WIDTH = 300
_THOUSAND, _MILLION = 1_000, 1_000_000


class EventRows:
    """Renders events as lines, in a language and with a set of glyphs."""

    def __init__(self, messages: MessageCatalog, glyphs: Glyphs) -> None:
        self._messages = messages
        self._runs = RunMessages(messages.language)
        self.glyphs = glyphs

    def user_message(self, text: str, remark: str = "") -> Iterator[StyledLine]:
        """Yield a message of the user, with a remark after it."""
        *before, last = sanitize(text.rstrip()).split("\n")
        mark: Fragments = (("class:faint", f"{self.glyphs.you} "),)
        behind: Fragments = (("class:faint", f"  {remark}"),) if remark else ()
        for number, one in enumerate((*before, last)):
            body: Fragments = (("class:you", one),) if one else ()
            if number == len(before):
                body = (*body, *behind)
            yield StyledLine(body, mark if number == 0 else (("", "  "),), (("", "  "),))

    def own_command(self, ran: Mapping[str, Any]) -> StyledLine:
        """Return the row of a command that a person ran in another terminal."""
        command = truncate_line(sanitize(str(ran["command"])), _MAX_CALL_WIDTH)
        output = str(ran["output"]).strip()
        lines = self._count(output.count("\n") + 1, "lines_one", "lines") if output else ""
        failure = self._runs.call_failure({"exit_code": ran["exit_code"]})
        facts = " · ".join(filter(None, (lines, failure)))
        mark = (("class:you", "! "), ("", command))
        return StyledLine(
            (*mark, ("class:faint", f"  {facts}" if facts else "")), rest=(("", "  "),)
        )

    def tool(
        self, started: Mapping[str, Any], done: Mapping[str, Any], width: int
    ) -> list[StyledLine]:
        """Return the row of a completed call, and the diff of the change it made."""
        metadata, error = done.get("metadata", {}), without_marks(done.get("error") or "")
        failure = self._runs.call_failure(metadata)
        title = str(started.get("title") or metadata.get("title", ""))
        name = truncate_line(tool_label(str(done["tool_name"]), title), _MAX_NAME_WIDTH)
        if metadata.get("denied"):
            return list(self._denied(name, done))
        if metadata.get("not_run"):
            return list(self._not_run(name, metadata))
        has_failed = bool(error or failure)
        state, glyph = ("failed", self.glyphs.failed) if has_failed else ("ok", self.glyphs.ok)
        facts = [f"{done['duration_ms'] / 1000:.1f}s"]
        stopped = self._runs.call_stopped(metadata, LOCAL_PRINCIPAL) if error else ""
        if summary := stopped or ("" if error else self._summary(done)):
            facts.append(truncate_line(summary, _MAX_NAME_WIDTH))
        right = " · ".join(facts)
        head = f"{glyph} {name}  "
        wide = min(width, _MAX_ROW_WIDTH)
        is_failed = error and not stopped
        arguments = started.get("arguments", {})
        detail = first_line(error) if is_failed else describe_arguments(arguments)
        detail = truncate_line(detail, max(wide - cell_width(head) - cell_width(right) - 2, 8))
        gap = max(wide - cell_width(head) - cell_width(detail) - cell_width(right), 2)
        body: Fragments = (
            (f"class:{state}", glyph),
            ("", f" {name}  "),
            ("class:failed" if is_failed else "", detail),
            ("class:failed" if failure else "class:faint", f"{' ' * gap}{right}"),
        )
        lines = [StyledLine(body, rest=(("", "  "),))]
        if changed := metadata.get("configuration"):
            files = truncate_line(", ".join(map(str, changed)), _MAX_CALL_WIDTH)
            warning = self._messages("configuration_changed", files=files)
            lines.append(StyledLine((("class:need", warning),), (("", "  "),), (("", "  "),)))
        for remark in self._runs.call_remarks(metadata):
            warning = truncate_line(sanitize(remark), _MAX_CALL_WIDTH)
            lines.append(StyledLine((("class:need", warning),), (("", "  "),), (("", "  "),)))
        if isinstance(diff := metadata.get("diff"), str) and not error:
            lines += self._diff(diff)
        if stopped:
            lines += self._last_output(str(error))
        return lines

    def _last_output(self, error: str) -> Iterator[StyledLine]:
        """Yield the last lines that a stopped call printed; the line after them is for models."""
        output = sanitize(error).splitlines()[:-1]
        if len(output) > _MAX_DIFF_LINES:
            count = len(output) - _MAX_DIFF_LINES
            yield self.faint(f"  {self._messages('earlier_lines', count=count)}")
        indent = (("", "  "),)
        for line in output[-_MAX_DIFF_LINES:]:
            yield StyledLine((("class:faint", line),), indent, indent, verbatim=True)

    def _denied(self, name: str, done: Mapping[str, Any]) -> Iterator[StyledLine]:
        metadata, rest = done["metadata"], (("", "  "),)
        rules = metadata.get("rules") or ([metadata["rule"]] if metadata.get("rule") else [])
        what = str(metadata.get("what") or name)
        if what.startswith(f"{name} {{"):
            what = truncate_line(what, _MAX_CALL_WIDTH)  # the arguments as JSON: a file's text, say
        first, *more = sanitize(what).rstrip().split("\n")
        mark = ("class:need", f"{self.glyphs.permission} {self._messages('denied')}  ")
        yield StyledLine((mark, ("", first)), rest=rest)
        for line in more[:_MAX_DIFF_LINES]:
            yield StyledLine((("", line),), rest, rest)
        if len(more) > _MAX_DIFF_LINES:
            yield self.faint(f"  {self._messages('more_lines', count=len(more) - _MAX_DIFF_LINES)}")
        if not rules:
            refusal = self._runs.refusal(metadata)
            why = truncate_line(sanitize(refusal) or str(done.get("error", "")), 400)
            yield StyledLine((("class:faint", why),), rest, rest)
        for rule in rules:
            hint = self._messages("allow_hint", rule=truncate_line(str(rule), 400))
            yield StyledLine((("class:faint", hint),), rest, rest)

    def _not_run(self, name: str, metadata: Mapping[str, Any]) -> Iterator[StyledLine]:
        """Yield the row of a call that was returned to the model, and why."""
        first = first_line(sanitize(str(metadata.get("what", ""))))
        about = "" if first == name else truncate_line(first, _MAX_CALL_WIDTH)
        mark = ("class:need", f"{self.glyphs.note} {self._runs('not_run')}  ")
        rest: Fragments = (("", "  "),)
        yield StyledLine((mark, ("", f"{name}  {about}".rstrip())), rest=rest)
        yield StyledLine((("class:faint", self._runs.not_run(metadata["not_run"])),), rest, rest)

    def change(
        self, diff: str, edge: Fragments = (("", "  "),), *, names: bool = False
    ) -> Iterator[StyledLine]:
        """Yield the lines of a unified diff, with the file names only if `names` is True."""
        for line in sanitize(diff).splitlines():
            is_name = line.startswith(("--- ", "+++ "))
            if names or not is_name:
                style = {"+": "class:ok", "-": "class:failed", "@": "class:faint"}.get(line[:1], "")
                style = "class:strong" if is_name else style
                yield StyledLine(((style, line),), edge, (*edge, ("", "  ")), verbatim=True)

    def _diff(self, diff: str) -> Iterator[StyledLine]:
        lines = list(self.change(diff))
        yield from lines[:_MAX_DIFF_LINES]
        if len(lines) > _MAX_DIFF_LINES:
            more = self._messages("more_lines", count=len(lines) - _MAX_DIFF_LINES)
            yield self.faint(f"  {more}")

    def _summary(self, done: Mapping[str, Any]) -> str:
        metadata = done.get("metadata", {})
        if failure := self._runs.call_failure(metadata):
            return failure
        if isinstance(count := metadata.get("matches"), int):
            return self._count(count, "results_one", "results")
        if isinstance(count := metadata.get("entries"), int):
            return self._count(count, "lines_one", "lines")
        if isinstance(diff := metadata.get("diff"), str):
            lines = [one for one in diff.splitlines() if not one.startswith(("---", "+++"))]
            added, removed = (sum(one.startswith(sign) for one in lines) for sign in "+-")
            return f"+{added} -{removed}"
        if "size" in metadata:
            return ""  # the result text of a write is meant for the model
        text = without_marks(str(done.get("result", ""))).strip()
        return self._count(text.count("\n") + 1, "lines_one", "lines") if text else ""

    def _count(self, count: int, singular: str, plural: str) -> str:
        return self._messages(singular if count == 1 else plural, count=count)

    def plan(self, plan: Mapping[str, Any]) -> StyledLine:
        """Return a plan on one line, which may wrap."""
        steps = [truncate_line(str(step["description"]), 60) for step in plan["steps"]]
        title = self._messages("plan_step")
        if len(steps) != 1:
            title = self._messages("plan", count=len(steps))
        arrow = f" {self.glyphs.arrow} "
        head: Fragments = (("class:accent", self.glyphs.plan), ("class:strong", f" {title}  "))
        body: Fragments = (*head, ("", arrow.join(steps)))
        if plan.get("made_by") == "larkspur":
            body = (*body, ("class:need", f"  {self._runs('plan_by_larkspur')}"))
        return StyledLine(body, rest=(("", "  "),))

    def steps(self, plan: Mapping[str, Any], *, is_over: bool = False) -> Iterator[StyledLine]:
        """Yield the goal of a plan and its steps with their status.

        `is_over`: its run has ended, and steps without a report are marked as such.
        """
        glyphs = self.glyphs
        marks = {
            "completed": ("class:ok", glyphs.ok),
            "failed": ("class:failed", glyphs.failed),
            "in_progress": ("class:running", glyphs.tool),
            "skipped": ("class:faint", glyphs.note),
        }
        goal = truncate_line(str(plan["goal"]), 400)
        yield StyledLine(
            (("class:accent", glyphs.plan), ("class:strong", f" {goal}")), rest=(("", "  "),)
        )
        if plan.get("made_by") == "larkspur":
            yield self.faint(f"  {self._runs('plan_by_larkspur')}")
        for step in plan["steps"]:
            mark = marks.get(step["status"], ("class:faint", glyphs.todo))
            if is_over and step["status"] in {"pending", "in_progress"}:
                mark = ("class:need", glyphs.question)
            body: Fragments = (mark, ("", f" {truncate_line(str(step['description']), 400)}"))
            if remarks := " · ".join(self._runs.step_remarks(step, is_over=is_over)):
                body = (*body, ("class:faint", f"  {truncate_line(remarks, 400)}"))
            yield StyledLine(body, (("", "  "),), (("", "    "),))

    def result(self, result: Mapping[str, Any], mark: str) -> StyledLine:
        """Return the dim line at the end of a run: time, tokens, cost."""
        usage = result["usage"]
        input_tokens = sum(
            usage.get(f"{kind}_tokens", 0) for kind in ("input", "cache_read", "cache_write")
        )
        summary = self._messages(
            "run_summary",
            time=format_duration(result["duration_ms"] / 1000),
            input=format_count(input_tokens),
            output=format_count(usage.get("output_tokens", 0)),
        )
        if count := result.get("calls_not_run"):
            summary = f"{self._runs.completed(count)} · {summary}"
        cost = result.get("cost")
        price = f" · {format_cost(cost)}" if cost else ""
        return self.faint(f"{mark} {summary}{price}")

    def produced_file(self, session_id: str, file: Mapping[str, Any]) -> StyledLine:
        """Return the row of a file that a run made."""
        name, size = sanitize(str(file["name"])), format_size(file["size"])
        path = find_local_file(session_id, file["name"], file["size"])
        where = sanitize(path) if path else f"larkspur files get {file['artifact_id']}"
        mark = (("class:accent", f"{self.glyphs.artifact} "), ("", name))
        return StyledLine((*mark, ("class:faint", f"  {size} · {where}")))

    def changed_file(self, change: ChangedFileItem) -> StyledLine:
        """Return the row of a file of the workspace that a run changed."""
        added = f" +{change.added}" if change.added else ""
        removed = f" -{change.removed}" if change.removed else ""
        kind = "undone" if change.is_undone else change.kind
        note = self._messages(f"change_{kind}")
        name = (("class:accent", f"{self.glyphs.artifact} "), ("", sanitize(change.path)))
        lines = (("class:ok", added), ("class:failed", removed))
        return StyledLine((*name, ("class:faint", f"  {note}"), *lines))

    def faint(self, text: str) -> StyledLine:
        """Return a dim line."""
        return StyledLine((("class:faint", text),), rest=(("", "  "),))

    def failed(self, sentence: str) -> StyledLine:
        """Return an error."""
        return StyledLine(
            (("class:failed", self.glyphs.failed), ("", f" {truncate_line(sentence, 2_000)}")),
            rest=(("", "  "),),
        )

    def limit(self, sentence: str) -> StyledLine:
        """Return why a run that can go on has ended."""
        text = f"{self.glyphs.permission} {truncate_line(sentence, 2_000)}"
        return StyledLine((("class:need", text),), rest=(("", "  "),))

    def note(self, sentence: str) -> StyledLine:
        """Return a note."""
        return self.faint(f"{self.glyphs.note} {truncate_line(sentence, 2_000)}")


def describe_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the argument that describes a call best."""
    for name in _DESCRIPTIVE_ARGUMENTS:
        if isinstance(value := arguments.get(name), str) and value.strip():
            return f'"{value}"' if name in _QUOTED_ARGUMENTS else value
    values = (value for value in arguments.values() if isinstance(value, str) and value.strip())
    return next(values, "")


def first_line(text: object) -> str:
    """Return the first line that is not blank."""
    return next((line for line in str(text).splitlines() if line.strip()), "")


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[StyledLine]:
    """Yield rows in aligned columns. The last column is dim and not padded."""
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
    for *before, last in rows:
        padded = zip(before, widths, strict=False)
        text = "".join(f"{one}{' ' * (wide - cell_width(one) + 2)}" for one, wide in padded)
        yield StyledLine((("", text), ("class:faint", last)), rest=(("", "    "),))
