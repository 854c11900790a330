"""The line of status: what is at work."""

import time

from internal.channels.cli.render.event_rows import (
    describe_arguments,
    first_line,
    format_duration,
    format_tokens,
)
from internal.channels.cli.render.text import Fragments, truncate_line
from internal.channels.cli.repl.activity import RunState
from internal.channels.cli.repl.messages import ReplMessages
from internal.channels.cli.repl.view import SessionView

_DETAIL = 60
_NAME = 24


def render_status(
    run: RunState, view: SessionView, words: ReplMessages, *, stopping: bool, queued: int
) -> Fragments:
    """Return what a run does, for how long, and how much waits behind it."""
    facts = [format_duration(int(max(time.time() - run.since, 0))).replace(".0s", "s")]
    if run.tokens:
        facts.append(words.say("tokens", count=format_tokens(run.tokens)))
    if queued:
        facts.append(words.say("queued", count=queued))
    name, detail = _doing(run, view, words)
    if stopping:
        name, detail = words.stopping, ""
    if run.status != "running":
        name = run.status
    said = " ".join(one for one in (name, truncate_line(detail, _DETAIL)) if one)
    return (
        ("class:running", f"{view.rows.glyphs.tool} "),
        ("", f"{said}  " if said else ""),
        ("class:faint", " · ".join(facts)),
    )


def _doing(run: RunState, view: SessionView, words: ReplMessages) -> tuple[str, str]:
    name, detail = words.thinking if run.thinking else "", ""
    if run.tools:
        call = next(reversed(run.tools.values()))
        name = truncate_line(str(call["tool_name"]), _NAME)
        detail = run.progress or first_line(describe_arguments(call.get("arguments", {})))
    elif view.plan is not None:
        steps = view.plan["steps"]
        done = sum(step["status"] in {"completed", "skipped"} for step in steps)
        detail = f"{view.rows.glyphs.plan} {done}/{len(steps)}"
    return name, detail
