"""Verdicts over the output of the programs: a line of JSON for each scenario."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from tests.compatibility.place import STREAMED

Verdict = Literal["works", "works with a note", "does not work", "not tried"]
RANKS: tuple[Verdict, ...] = ("works", "works with a note", "does not work", "not tried")
MAX_WORDS = 200
"""Characters of an error that are kept."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_REFUSED = re.compile(r"401|unauthori[sz]ed|authenticat|authoriz|api key|token", re.IGNORECASE)


class Outcome(NamedTuple):
    """Output of a scenario: a result, an error, or the reason why the client cannot do it."""

    scenario: str
    result: Any = None
    error: str = ""
    absent: str = ""


class Judged(NamedTuple):
    """The verdict over a row, with a sentence for each scenario that is not as it should be.

    `passed` and `absent` are names of scenarios.
    """

    verdict: Verdict
    notes: tuple[str, ...]
    passed: tuple[str, ...]
    absent: tuple[str, ...]


def outcomes(output: str) -> list[Outcome]:
    """Read the lines of a program that are results; it may print others."""
    found = []
    for line in output.splitlines():
        if not line.startswith('{"scenario"'):
            continue
        said = json.loads(line)
        found.append(
            Outcome(
                said["scenario"],
                said.get("result"),
                str(said.get("error", "")),
                said.get("absent", ""),
            )
        )
    return found


def shortened(text: str) -> str:
    """Return the start of an error in one line, without addresses of this run."""
    line = " ".join(_ANSI.sub("", text).split())
    line = re.sub(r",? ?['\"]request_id['\"]: ?['\"]\w+['\"]", "", line)
    line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", line)
    line = re.sub(r"/(?:tmp|root|home)/\S+", "…", line)
    return line if len(line) <= MAX_WORDS else line[:MAX_WORDS].rstrip() + " …"


def has(text: str) -> Callable[[Any], bool]:
    return lambda result: isinstance(result, str) and text in result


def listed(name: str) -> Callable[[Any], bool]:
    return lambda result: isinstance(result, list) and name in result


def _streamed(result: Any) -> bool:
    return isinstance(result, str) and result.strip() == STREAMED


# By `door`: the required results of scenarios, and whether the client is useless without them
_CHAT: dict[str, tuple[Callable[[Any], bool], bool]] = {
    "plain": (has("Answered plain."), True),
    "stream": (_streamed, False),
    "history": (has("remembered"), False),
    "tools": (has("Answered tools."), False),
    "picture": (has("I see a picture."), False),
    "system": (has("Instructions: kept."), False),
    "models": (listed("larkspur"), False),
}
_MCP: dict[str, tuple[Callable[[Any], bool], bool]] = {
    "list": (listed("create_task"), True),
    "call": (has("Answered plain."), True),
    "progress": (lambda result: isinstance(result, int) and result > 0, False),
    "mistake": (has("no task"), False),
    "connected": (has("onnected"), True),
}
_STREAM: dict[str, tuple[Callable[[Any], bool], bool]] = {
    "named": (listed("workflow.result.final"), True),
    "unnamed": (listed("workflow.result.final"), False),
    "resumed": (has("later"), False),
}
_WEBHOOK: dict[str, tuple[Callable[[Any], bool], bool]] = {
    "prefixed secret": (lambda result: result is True, True),
    "plain secret": (lambda result: result is True, False),
    "changed body": (lambda result: result is False, True),
}
_EXPECTED = {
    "chat": _CHAT,
    "responses": _CHAT,
    "mcp": _MCP,
    "mcp-serve": _MCP,
    "stream": _STREAM,
    "webhook": _WEBHOOK,
}


def judge(door: str, found: list[Outcome], failing_runs: int) -> Judged:
    """Return the verdict over the outcomes of a client of one `door`."""
    expected: Mapping[str, tuple[Callable[[Any], bool], bool]] = _EXPECTED[door]
    passed, useless = [], False
    notes: dict[str, list[str]] = {}
    for each in found:
        if each.absent:
            continue
        if note := _note(each, expected, failing_runs):
            notes.setdefault(note, []).append(each.scenario)
            useless |= each.scenario in expected and expected[each.scenario][1]
        else:
            passed.append(each.scenario)
    verdict: Verdict = "does not work" if useless or not passed else "works"
    if notes and verdict == "works":
        verdict = "works with a note"
    absent = tuple(each.scenario for each in found if each.absent)
    sentences = tuple(f"{', '.join(names)}: {note}" for note, names in notes.items())
    return Judged(verdict, sentences, tuple(passed), absent)


def _note(
    outcome: Outcome,
    expected: Mapping[str, tuple[Callable[[Any], bool], bool]],
    failing_runs: int,
) -> str:
    match outcome.scenario:
        case "wrong key":
            # How a client words it is its own matter; some print it and succeed.
            told = str(outcome.result)
            is_refused = bool(outcome.error) or _REFUSED.search(told)
            return "" if is_refused else f"not refused: {shortened(told)}"
        case "failing":
            return "" if failing_runs == 1 else f"one request is {failing_runs} runs"
        case scenario:
            fits, _ = expected[scenario]
            if outcome.error:
                return shortened(outcome.error)
            return "" if fits(outcome.result) else shortened(f"got {outcome.result!r}")
