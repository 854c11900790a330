"""The pytest plugin that leaves out tests whose needs the machine does not meet.

A test names a need with `@pytest.mark.needs("namespaces")`; the marks postgres, browser and podman
are needs as well. Abilities are tried once, before the first test. The tests that are left out are
counted and named at the end. With `LARKSPUR_TEST_REQUIRE=all` an absent ability is an error.
"""

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.machine.abilities import ABILITIES, Ability, find_ability, find_reason, find_reasons

REQUIRE_VARIABLE = "LARKSPUR_TEST_REQUIRE"
"""`all`, or the names of abilities, separated by spaces."""
REPORT_VARIABLE = "LARKSPUR_TEST_NOT_RUN"
"""A file that gets the lines about tests that were left out, instead of the terminal."""
_INPUT = "larkspur_reasons"
_OUTPUT = "larkspur_left_out"


class LeftOut(NamedTuple):
    """A test that was not run, the ability that it needs, and why the machine lacks it."""

    ability: str
    reason: str
    test: str


class Machine:
    """Abilities of the machine, each tried at its first use."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        self.left_out: set[LeftOut] = set()

    def find_lack(self, needs: list[str]) -> str | None:
        """Return the first need that is not met."""
        for name in needs:
            if name not in self.reasons:
                self.reasons[name] = find_reason(_ability(name))
            if self.reasons[name]:
                return name
        return None

    def lines(self) -> list[str]:
        """Return sentences on skipped tests: one for each ability, then its tests by module."""
        counts = Counter((each.ability, each.reason) for each in self.left_out)
        rows: list[str] = []
        for (name, reason), count in sorted(counts.items()):
            tests = "1 test" if count == 1 else f"{count} tests"
            rows.append(f"{tests} not run without {_ability(name).title}: {reason}")
            functions = Counter(
                each.test.partition("[")[0] for each in self.left_out if each.ability == name
            )
            rows += [
                f"  {function}{f' ({number} forms)' if number > 1 else ''}"
                for function, number in sorted(functions.items())
            ]
        return rows


_MACHINE = pytest.StashKey[Machine]()


def find_needs(item: pytest.Item) -> list[str]:
    """Return the names of the abilities that a test needs."""
    named = [str(name) for mark in item.iter_markers("needs") for name in mark.args]
    return named + [each.name for each in ABILITIES if item.get_closest_marker(each.name)]


def _ability(name: str) -> Ability:
    ability = find_ability(name)
    if ability is None:
        raise pytest.UsageError(f"no ability in tests/machine/abilities.py is called {name}")
    return ability


def _find_required(value: str) -> list[str]:
    if value == "all":
        return [ability.name for ability in ABILITIES if ability.is_required]
    return value.split()


def pytest_configure(config: pytest.Config) -> None:
    """Try the abilities, and end the run if one is required and absent."""
    config.addinivalue_line(
        "markers",
        "needs(*abilities): abilities of the machine, listed in tests/machine/abilities.py",
    )
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        config.stash[_MACHINE] = Machine(worker[_INPUT])
        return
    required = _find_required(os.environ.get(REQUIRE_VARIABLE, ""))  # noqa: TID251 - of the tests
    # Workers get the result, so that nothing is tried twice. A process that runs the tests itself
    # tries what they need.
    has_workers = bool(config.getoption("numprocesses", None))
    tried = ABILITIES if has_workers else [_ability(name) for name in required]
    machine = config.stash[_MACHINE] = Machine(find_reasons(tried))
    absent = [
        f"{_ability(name).title}: {machine.reasons[name]}"
        for name in required
        if machine.reasons[name]
    ]
    if absent:
        pytest.exit(f"This run requires what the machine lacks. {'; '.join(absent)}.", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker the found abilities."""
    node.workerinput[_INPUT] = node.config.stash[_MACHINE].reasons


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Leave out tests after all other selections, to name only tests that would otherwise run."""
    yield
    machine = config.stash[_MACHINE]
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        lack = machine.find_lack(find_needs(item))
        if lack is None:
            kept.append(item)
        else:
            left_out.append(item)
            machine.left_out.add(LeftOut(lack, machine.reasons[lack], item.nodeid))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the tests a worker left out. A run whose tests were all left out has not failed."""
    left_out = session.config.stash[_MACHINE].left_out
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = [tuple(each) for each in left_out]
    elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and left_out:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the tests left out by a worker; a crashed worker has reported nothing."""
    found = getattr(node, "workeroutput", {}).get(_OUTPUT, ())
    node.config.stash[_MACHINE].left_out.update(LeftOut(*each) for each in found)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the tests that were left out."""
    lines = config.stash[_MACHINE].lines()
    if not lines:
        return
    if report := os.environ.get(REPORT_VARIABLE):  # noqa: TID251 - of the tests
        with Path(report).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        return
    terminalreporter.section("not run on this machine")
    for line in lines:
        terminalreporter.write_line(line)
