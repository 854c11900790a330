"""The line of status: what is at work."""

import time

from internal.channels.cli.render.event_rows import clock, first_line, short, telling
from internal.channels.cli.render.text import Fragments, one_line
from internal.channels.cli.repl.activity import RunState
from internal.channels.cli.repl.view import View
from internal.channels.cli.repl.words import Words

_DETAIL = 60
_NAME = 24


def at_work(run: RunState, view: View, words: Words, *, stopping: bool, queued: int) -> Fragments:
    """Return what a run does, for how long, and how much waits behind it."""
    facts = [clock(int(max(time.time() - run.since, 0))).replace(".0s", "s")]
    if run.tokens:
        facts.append(words.say("tokens", count=short(run.tokens)))
    if queued:
        facts.append(words.say("queued", count=queued))
    name, detail = _doing(run, view, words)
    if stopping:
        name, detail = words.stopping, ""
    if run.status != "running":
        name = run.status
    said = " ".join(one for one in (name, one_line(detail, _DETAIL)) if one)
    return (
        ("class:running", f"{view.rows.glyphs.tool} "),
        ("", f"{said}  " if said else ""),
        ("class:faint", " · ".join(facts)),
    )


def _doing(run: RunState, view: View, words: Words) -> tuple[str, str]:
    name, detail = words.thinking if run.thinking else "", ""
    if run.tools:
        call = next(reversed(run.tools.values()))
        name = one_line(str(call["tool_name"]), _NAME)
        detail = run.progress or first_line(telling(call.get("arguments", {})))
    elif view.plan is not None:
        steps = view.plan["steps"]
        done = sum(step["status"] in {"completed", "skipped"} for step in steps)
        detail = f"{view.rows.glyphs.plan} {done}/{len(steps)}"
    return name, detail
