"""Every setting is read: none is documented and settable without an effect."""

import re
from collections import Counter
from pathlib import Path

import pytest
from mypy.modulefinder import BuildSource

from internal.config.setting_keys import KEYS
from internal.settings.settings import AccessSettings, Settings
from internal.settings.types import Section, Text, key, section
from tests import ROOT
from tests.support.setting_reads import find_reads, leaves, sections, sources_below, unread

HOLDS_SETTINGS = re.compile(r"\bsettings\b|\bloaded\b|internal\.config\b")
"""Modules without these words have no settings; leaving them out takes a tenth of the time."""


@pytest.mark.slow
def test_every_leaf_is_read_outside_of_its_declaration() -> None:
    kinds = Counter(sections(Settings))
    assert [kind for kind, count in kinds.items() if count > 1] == []  # else a class is no path
    declaring = {kind.__module__ for kind in kinds}
    program = [*sources_below(ROOT / "cmd", "larkspur"), *sources_below(ROOT, "internal")]
    chosen = [each for each in program if HOLDS_SETTINGS.search(Path(each.path or "").read_text())]
    config = {each.module for each in chosen if each.module.startswith("internal.config")}
    reads = find_reads(chosen, frozenset(declaring | config))
    found = list(leaves(Settings))
    assert {
        each for each in KEYS if not any(f"{leaf.path}.".startswith(f"{each}.") for leaf in found)
    } == set()
    assert unread(found, reads) == []

    # the check finds a leaf whose last name is read elsewhere
    class Access(AccessSettings):
        talk: tuple[Text, ...] = key((), "Read nowhere.")

    class Extended(Settings):
        access: Access = section(Access)

    class WithSection(Settings):
        other: Access = section(Access)

    assert any(leaf.path == "channels.lark.access.talk" for leaf in found)
    assert "access.talk" in unread(list(leaves(Extended)), reads)
    assert "other.max_daily_cost" in unread(list(leaves(WithSection)), reads)


SETTINGS = """
class Base:
    shared: int

class First(Base):
    name: str
    port: int
    size: int
    secret: str

    def check(self) -> bool:
        return bool(self.secret)

    @property
    def shown(self) -> str:
        return self.twice()

    def twice(self) -> str:
        return str(self.size * 2)

class Second:
    name: str
    port: int

class All:
    first: First
    second: Second | None
    items: tuple[Second, ...]
"""
READER = """
from program_settings import All as Everything, First

class Part:
    def __init__(self, first: First) -> None:
        self._first = first

    def text(self) -> str:
        return self._first.name + self._first.shown

def read(everything: Everything) -> int:
    part = everything.first
    return part.shared + sum(each.port for each in everything.items)
"""


def test_reads_are_told_apart_by_the_class_and_not_by_the_name() -> None:
    sources = [
        BuildSource("program_settings.py", "program_settings", SETTINGS),
        BuildSource("reader.py", "reader", READER),
    ]
    reads = find_reads(sources, frozenset({"program_settings"}))
    own = {
        f"{owner.rpartition('.')[2]}.{name}"
        for owner, name in reads
        if owner.startswith("program_settings.")
    }
    fields = {"All.first", "All.items", "Base.shared", "First.name", "First.size", "Second.port"}
    assert own == {*fields, "First.shown", "First.twice"}


class Item(Section):
    inner: int = 0


class Sample(Section):
    single: int = 0
    many: tuple[Item, ...] = ()


def test_items_of_lists_have_leaves() -> None:
    assert [leaf.path for leaf in leaves(Sample)] == ["single", "many.inner"]
