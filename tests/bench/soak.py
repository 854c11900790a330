"""A soak: a fixed load on a real gateway for a long time, and the figures that grow meanwhile.

`python -m tests.bench.soak [MINUTES]`, or `make soak`. The load is tasks over HTTP in new and in
kept sessions, every fifth with two tool calls; event streams that come and go; and messages in 20
chats of a simulated Lark. All of it is paced, so it is the same on each machine that keeps up.

It prints the slope of each figure per 1,000 tasks, and fails if memory, descriptors or threads of
the gateway rise steadily; see `tests.bench.trend`.
"""
# ruff: noqa: T201 - a program that reports

import asyncio
import itertools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from internal.simulators.lark.model import Chat, Person
from internal.simulators.lark.simulator import LarkSim
from tests.bench.load import Line, Watch, line, run, watching
from tests.bench.processes import Server, scripted_model
from tests.bench.trend import Sample, Trend, trend
from tests.support.lark_load import APP, served, until_reply

DEFAULT_MINUTES = 30.0
WORKERS, WATCHERS, CHATS, KEPT_SESSIONS = 4, 8, 20, 16
TASK_SECONDS, MESSAGE_SECONDS, WATCH_SECONDS = 0.5, 0.5, 4.0
"""Each worker starts a task so often; a message goes to Lark so often; a watcher stays so long."""
SAMPLES = 240
CACHE_BYTES = 2_000_000
"""Of messages: full before the first third of a soak of 30 minutes has passed."""
MEGABYTE = 1_000_000


class Figure(NamedTuple):
    """A sampled figure: unit, and allowed rise. None allows any rise."""

    name: str
    unit: str
    allowance: float | None
    read: Callable[[Server], float]


FIGURES = (
    Figure("memory", "MB", 8.0, lambda server: server.rss),
    Figure("descriptors", "", 8.0, lambda server: _count(server.pid, "fd")),
    Figure("threads", "", 2.0, lambda server: _count(server.pid, "task")),
    Figure("child processes", "", 4.0, lambda server: _children(server.pid)),
    Figure("write-ahead log", "MB", None, lambda server: _size(server.home, "*.db-wal")),
    Figure("home folder", "MB", None, lambda server: _size(server.home, "**/*")),
    Figure("workspace folders", "", None, lambda server: len([*server.home.glob("workspaces/*")])),
)


class Soak:
    """The load, and how many tasks and messages have ended."""

    def __init__(self, server: Server, sim: LarkSim, seconds: float) -> None:
        self._server, self._sim = server, sim
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._numbers = itertools.count()
        self._sessions: list[str] = []
        self.tasks = self.messages = self.streams = 0
        self.samples: defaultdict[str, list[Sample]] = defaultdict(list)

    async def run(self) -> None:
        """Load the gateway until the end, and take the samples."""
        people = [self._sim.lark.state.add_person(f"Person {number}") for number in range(CHATS)]
        chats = [(person, self._sim.dm(person)) for person in people]
        async with (
            watching(self._server.port, self._server.token) as watch,
            asyncio.TaskGroup() as tasks,
        ):
            for _ in range(WORKERS):
                tasks.create_task(self._work(watch))
            for number in range(WATCHERS):
                tasks.create_task(self._watch(number))
            tasks.create_task(self._talk(itertools.cycle(chats)))
            tasks.create_task(self._sample())

    async def _every(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat the work until the end, at most once per interval."""
        due = time.monotonic()
        while due < self._end:
            await work()
            due = max(due + seconds, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def _work(self, watch: Watch) -> None:
        async with line(self._server.port, self._server.token) as mine:
            await self._every(TASK_SECONDS, lambda: self._task(mine, watch))

    async def _task(self, mine: Line, watch: Watch) -> None:
        number = next(self._numbers)
        kept = self._sessions[number % KEPT_SESSIONS] if self._keeps(number) else None
        task = "bench:calls:2" if number % 5 == 0 else "bench:words:10"
        created = await mine.create(task, kept, permission_mode="all")
        if len(self._sessions) < KEPT_SESSIONS:
            self._sessions.append(created["session_id"])
        run_id = created["run_id"].encode()
        await watch.ended[run_id]
        del watch.ended[run_id]
        watch.first.pop(run_id, None)
        self.tasks += 1

    def _keeps(self, number: int) -> bool:
        return number % 2 == 1 and len(self._sessions) == KEPT_SESSIONS

    async def _watch(self, number: int) -> None:
        await asyncio.sleep(number * WATCH_SECONDS / WATCHERS)  # not all at once
        await self._every(0, self._follow)

    async def _follow(self) -> None:
        async with watching(self._server.port, self._server.token):
            await asyncio.sleep(WATCH_SECONDS)
        self.streams += 1

    async def _talk(self, chats: "itertools.cycle[tuple[Person, Chat]]") -> None:
        async def say() -> None:
            person, chat = next(chats)
            sent = await self._sim.send_text(person, chat, "bench:words:10")
            await until_reply(self._sim, chat, sent)
            self.messages += 1

        await self._every(MESSAGE_SECONDS, say)

    async def _sample(self) -> None:
        async def take() -> None:
            for figure in FIGURES:
                value = await asyncio.to_thread(figure.read, self._server)
                self.samples[figure.name].append(Sample(self.tasks + self.messages, value))

        await self._every(self._seconds / SAMPLES, take)


class Report(NamedTuple):
    """Result of a soak: the trend of each figure by its name, and the steadily rising figures."""

    soak: Soak
    trends: dict[str, Trend]
    rising: list[str]

    def text(self) -> str:
        """Return a Markdown table, and a sentence about the load."""
        soak = self.soak
        rows = [
            f"| {each.name} {each.unit and f'({each.unit})'} | {found.median:,.1f}"
            f" | {found.slope:+,.2f} | {found.rise:+,.1f} | {found.tau:+.2f}"
            f" | {'any' if each.allowance is None else f'{each.allowance:g}'} |"
            for each in FIGURES
            for found in [self.trends[each.name]]
        ]
        head = "| figure | median | per 1,000 tasks | rise | tau | allowed |"
        load = f"{soak.tasks:,} tasks, {soak.messages:,} Lark messages, {soak.streams:,} watchers"
        return "\n".join([load, "", head, "|---" * 6 + "|", *rows])


async def soak(home: Path, model: str, seconds: float) -> Report:
    """Run a soak, and judge it."""
    async with LarkSim([APP]) as sim:
        sim.set_faults(limits=False)
        settings = {
            "LARKSPUR_AGENT__GATES": "off",
            "LARKSPUR_AGENT__MESSAGE_CACHE_BYTES": str(CACHE_BYTES),
        }
        async with served(sim, home, model, **settings) as server:
            load = Soak(server, sim, seconds)
            await load.run()
    trends = {each.name: trend(load.samples[each.name]) for each in FIGURES}
    rising = [
        each.name
        for each in FIGURES
        if each.allowance is not None and trends[each.name].rises(each.allowance)
    ]
    return Report(load, trends, rising)


def _count(pid: int, folder: str) -> int:
    return len([*Path(f"/proc/{pid}/{folder}").iterdir()])


def _children(pid: int) -> int:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return sum(len(each.read_text(encoding="ascii").split()) for each in lists)


def _size(folder: Path, pattern: str) -> float:
    sizes = 0
    for file in folder.glob(pattern):
        try:
            sizes += file.lstat().st_size
        except FileNotFoundError:  # removed meanwhile
            continue
    return sizes / MEGABYTE


def main(minutes: float) -> int:
    """Run a soak and print its report; return 1 if something rises steadily."""
    print(f"A soak of {minutes:g} minutes.", flush=True)
    with tempfile.TemporaryDirectory() as folder, scripted_model() as model:
        report = run(lambda: soak(Path(folder) / "home", model, minutes * 60))
    print(report.text())
    for name in report.rising:
        print(f"FAILED: {name} of the gateway rises steadily.")
    return 1 if report.rising else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_MINUTES))
