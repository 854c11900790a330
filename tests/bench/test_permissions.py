"""Cost of the worst commands a model can send: their verdict, and the delay of other work."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tree_sitter_bash
from tree_sitter import Language, Parser

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.policy import Policy, evaluate_call
from internal.agent.domain.permissions.rules import (
    MAX_RULE_CHARACTERS,
    MAX_RULES,
    check_rule_lengths,
)
from internal.config.home import prepare
from internal.tools.commands.shell import shell
from larkspur.task_defaults import tool_targets
from tests.bench.table import Row, Table, most
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply

pytestmark = pytest.mark.bench

BYTES = 64 * 1024
CALLS = 5
ROUNDS = 5
TICK_SECONDS = 0.002
VERDICT_GOAL, LAG_GOAL = most(250, "ours"), most(50, "ours")
DENY = ("shell(rm *)", "shell(git push *)", "shell(> secrets/**)", "shell(curl *)")
PLAIN = "echo " + "a " * (BYTES // 2 - 3)


def fill(text: str, before: str = "", after: str = "") -> str:
    """Return as much of a repeated text as a command may have, between two others."""
    return before + text * ((BYTES - len(before) - len(after)) // len(text)) + after


SHAPES = {
    "one word": fill("a"),
    "words": PLAIN,
    "words of a wrapper": fill(" a", "env"),
    "wrappers": fill("env "),
    "xargs": fill("xargs "),
    "words of a shell": fill(" 'a b'", "bash -c"),
    "nested shells": fill("bash -c "),
    "options": fill(" -o", "git"),
    "assignments": fill("a=b ", after="ls"),
    "variables": fill("$a "),
    "variables in a string": fill("$a", 'echo "', '"'),
    "substitutions": fill("$(a) "),
    "nested substitutions": fill("$("),
    "backquotes": fill("`a` "),
    "pipes": fill("a|"),
    "lists": fill("a;"),
    "redirections": fill(">a "),
    "descriptors": fill("0>&1 "),
    "subshells": fill("("),
    "braces": fill("{"),
    "quotes": fill("'"),
    "double quotes": fill('"'),
    "escapes": fill("\\a"),
    "globs": fill("* "),
    "here-documents": fill("<<a "),
    "lines": fill("a\n"),
    "comments": fill("#\n"),
    "separators in a word": fill("=a", "env x"),
    "commands in a string": fill("e rm;", "sh -c '", "'"),
    "wide characters": fill("好")[: BYTES // 3],
}


def milliseconds(deny: tuple[str, ...], command: str) -> float:
    begun = time.perf_counter()
    evaluate_call(Policy(Mode.ALL, deny=deny), shell.spec, {"command": command})
    return (time.perf_counter() - begun) * 1000


def worst_shape() -> str:
    """Return the name of the shape that takes the longest, each tried once."""
    return max(SHAPES, key=lambda name: milliseconds(DENY, SHAPES[name]))


def test_the_worst_command(table: Table) -> None:
    """Measure all shapes once; then the worst of them beside a parser of as many plain words."""
    worst = worst_shape()
    parser = Parser(Language(tree_sitter_bash.language()))
    ours, bare = [], []
    for _ in range(ROUNDS):
        ours.append(milliseconds(DENY, SHAPES[worst]))
        begun = time.perf_counter()
        parser.parse(PLAIN.encode())
        bare.append((time.perf_counter() - begun) * 1000)
    measure = f"permission verdict, worst 64 KB command ({worst})"
    table.add(Row(measure, "ms", ours, bare, "bare tree-sitter, plain words", VERDICT_GOAL))


async def lags(ends: asyncio.Event) -> list[float]:
    """Return by how many milliseconds each tick was late until the end."""
    late, loop = [], asyncio.get_running_loop()
    while not ends.is_set():
        due = loop.time() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        late.append((loop.time() - due) * 1000)
    return late


@contextmanager
def frozen() -> Iterator[None]:
    """Collect garbage as in a gateway, without the objects that existed before."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def reviewed(home: Path, command: str) -> list[float]:
    """Return the lags while a reply with the worst commands is reviewed, after it was received."""
    calls = [Call("shell", {"command": command})] * CALLS
    environ = {"LARKSPUR_AGENT__GATES": "off"}
    async with open_agent(home, [Reply(calls=calls), Reply(text="done")], environ) as here:
        ends = asyncio.Event()
        with frozen():
            ticking = asyncio.create_task(lags(ends))
            made = await here.submit("judge", permission_mode=Mode.ASK, deny=DENY)
            await here.asked(made)
            ends.set()
            return await ticking


async def test_the_event_loop_while_a_reply_is_reviewed(tmp_path: Path, table: Table) -> None:
    """The model is in the same process, so its part is in the figures; idle ticks beside it."""
    worst = worst_shape()
    longest, p99, idle = [], [], []
    for number in range(ROUNDS):
        late = await reviewed(prepare(tmp_path / str(number)), SHAPES[worst])
        longest.append(max(late))
        p99.append(sorted(late)[len(late) * 99 // 100])
        ends = asyncio.Event()
        asyncio.get_running_loop().call_later(1.0, ends.set)
        idle.append(max(await lags(ends)))
    reply = f"a reply of {CALLS} such commands is reviewed"
    table.add(
        Row(f"longest event-loop lag while {reply}", "ms", longest, idle, "idle loop", LAG_GOAL),
        Row("the same, p99", "ms", p99, idle, "idle loop, longest"),
    )


def rules_of(text: str, first: int) -> tuple[str, ...]:
    """Return as many rules as a request may have, each of a repeated text and a new number."""
    size = MAX_RULE_CHARACTERS // MAX_RULES - len("shell(0000)")
    numbers = range(first, first + MAX_RULES)
    return tuple(f"shell({text * (size // len(text))}{number})" for number in numbers)


def test_the_most_rules_of_a_request(table: Table) -> None:
    """Measure the parsing of rules, which happens on the event loop."""
    targets, ours = tool_targets(), []
    for number in range(ROUNDS):  # each with rules of its own: parsed ones are remembered
        taken = []
        for text in ("a", "a ", "'a' ", "\\a", "git -c a "):
            rules = rules_of(text, number * MAX_RULES)
            check_rule_lengths(rules)
            begun = time.perf_counter()
            Policy(deny=rules).check(targets)
            taken.append((time.perf_counter() - begun) * 1000)
        ours.append(max(taken))
    table.add(Row("the most permission rules of a request", "ms", ours, goal=most(50, "ours")))
