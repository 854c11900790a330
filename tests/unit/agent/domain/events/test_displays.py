"""Declared displays of each event, compared with the code of the displays."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from internal.agent.domain.events.displays import DISPLAYS, Display
from internal.agent.domain.events.types import EVENTS, Event
from tests import ROOT

SOURCES: dict[Display, tuple[str, ...]] = {
    "page": ("web/src",),
    "terminal": ("internal/channels/cli/repl", "internal/channels/cli/render"),
    "one_shot": ("internal/channels/cli/headless",),
    "chat": (
        "internal/channels/chat",
        "internal/channels/lark",
        "internal/agent/app/chat_delivery.py",
        "internal/agent/app/mentions.py",
    ),
}
"""The code of each display that handles events; the stream passes all on that are not inner."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
QUOTED = re.compile(r"'([a-z_.]+)'")


def files(display: Display) -> Iterator[Path]:
    for each in SOURCES[display]:
        path = ROOT / each
        found = path.rglob("*.*") if path.is_dir() else [path]
        yield from (one for one in found if one.suffix in {".py", ".ts", ".tsx"})


CLASSES = {event.__name__: event.name for event in EVENTS}


def words(path: Path) -> set[str]:
    """Return the strings of a file, without its comments, and the names of its event classes."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return set() if ".gen." in path.name else {*QUOTED.findall(COMMENT.sub("", text))}
    nodes = list(ast.walk(ast.parse(text)))
    strings = {str(each.value) for each in nodes if isinstance(each, ast.Constant)}
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    return strings | {CLASSES[each] for each in names & CLASSES.keys()}


def handled(display: Display) -> set[str]:
    """Return the names of the events that the code of a display handles."""
    found = set[str]().union(*map(words, files(display)))
    return {event.name for event in EVENTS if event.name in found}


@pytest.mark.parametrize("display", SOURCES)
def test_a_display_handles_the_events_that_it_shows_and_no_others(display: Display) -> None:
    assert handled(display) == {event.name for event in EVENTS if display in event.shown}


def test_the_stream_has_all_events_but_inner_ones() -> None:
    assert [each.name for each in EVENTS if ("stream" in each.shown) == each.inner] == []


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_an_event_says_of_each_display_whether_it_is_shown_or_told(event: type[Event]) -> None:
    assert event.shown <= DISPLAYS.keys()
    assert event.told.keys() <= DISPLAYS.keys() - event.shown
