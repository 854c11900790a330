"""Sums of usage equal the sums over all rows, whatever happened to their runs and sessions."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.runs.finalization import RunResult, finalize_run
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Origin, Run, Task
from internal.agent.domain.usage import PersonUsage, Usage, UsageKey, UsageSum
from internal.agent.store.database import Database, Row, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.stores import Stores
from internal.database_address.address import is_postgres
from internal.storage.migrations import migrations
from tests.support.database_files import execute
from tests.support.postgres_server import shared_server
from tests.support.store_records import a_run, a_session, a_task

OWNERS = ("ana", "ben", "cyd")
PEOPLE = ("ana", "ben", "dan")
MODELS = {"big": 0.25, "small": 0.0625, "free": 0.0, "unpriced": None}
STEPS = 80
Select = Callable[[str], list[Row]]


class History:
    """Random history of runs, stored as the product stores it."""

    def __init__(self, seed: int, stores: Stores) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a seeded history
        self._stores = stores
        self._now = datetime(2026, 1, 31, 8, tzinfo=UTC)
        self._count = 0
        self._sessions: list[SessionId] = []
        self._running: dict[Run, tuple[Task, dict[str, Usage]]] = {}
        self._ended: list[tuple[Run, Task]] = []

    def next_step(self) -> Callable[[], Write[None]]:
        """Return the statements of a possible next step."""
        self._now += timedelta(hours=self._random.choice((0, 1, 9)))
        possible: list[Callable[[], Write[None]]] = [self._open_session]
        possible += 3 * [self._start_run] * bool(self._sessions)
        possible += 6 * [self._reply] * bool(self._running)
        possible += 2 * [self._end_run] * bool(self._running)
        possible += [self._restart] * bool(self._running)
        possible += [self._title] * bool(self._ended)
        possible += [self._delete_session] * bool(self._sessions)
        possible += [self._prune]
        return self._random.choice(possible)

    def today(self) -> str:
        """Return the day of the last step."""
        return self._now.date().isoformat()

    def _open_session(self) -> Write[None]:
        self._count += 1
        session = a_session(f"session-{self._count}", owner=self._random.choice(OWNERS))
        self._sessions.append(session.id)
        yield from self._stores.sessions.add(session)

    def _start_run(self) -> Write[None]:
        self._count += 1
        session, name = self._random.choice(self._sessions), f"run-{self._count:04}"
        origin = Origin("web", self._random.choice(PEOPLE))
        task = a_task(
            f"task-{self._count:04}", session, lane=name, origin=origin, created=self._time()
        )
        run = a_run(name, session, lane=name)
        yield from self._stores.tasks.add(task, None)
        yield from self._stores.sessions.add_task(task, "", one_shot=False)
        yield from self._stores.runs.add(run, self._time())
        claimed = yield from self._claim(run)
        self._running[claimed] = task, {}

    def _reply(self) -> Write[None]:
        """Store the usage of one reply with all earlier usage of its run, as the engine does."""
        run = self._random.choice([*self._running])
        task, used = self._running[run]
        model = self._random.choice([*MODELS])
        tokens = (self._random.randrange(100) for _ in Usage.__struct_fields__)
        used[model] = used.get(model, Usage()) + Usage(*tokens)
        yield from self._save(run, task, used)

    def _restart(self) -> Write[None]:
        """Let the process of a run die. The next one stores its last reply again."""
        run = self._random.choice([*self._running])
        task, used = self._running.pop(run)
        yield from self._stores.runs.requeue_failed(run.id, run.fence, not_before="", crashed=True)
        claimed = yield from self._claim(run)
        self._running[claimed] = task, used
        yield from self._save(claimed, task, used)

    def _end_run(self) -> Write[None]:
        run = self._random.choice([*self._running])
        task, used = self._running.pop(run)
        end = RunEnd("completed", "final_answer", Usage(), None, "done", "", self._time())
        spent = {model: (usage, self._cost(model, usage)) for model, usage in used.items()}
        if self._random.random() < 0.2:
            spent = {}  # the checkpoint cannot be read
        result = RunResult(end, usage=spent)
        yield from finalize_run(self._stores, run, task, result=result, ids=new_task_ids())
        self._ended.append((run, task))

    def _title(self) -> Write[None]:
        """Store a request after the end of a run, as the titles of sessions do."""
        run, task = self._random.choice(self._ended)
        model, usage = self._random.choice([*MODELS]), Usage(7, 3)
        principal, cost = task.origin.principal, self._cost(model, usage)
        add = self._stores.usage.add
        yield from add(run, principal, model, usage=usage, cost=cost, now=self._time())

    def _delete_session(self) -> Write[None]:
        session = self._random.choice(self._sessions)
        if (yield from self._stores.sessions.delete(session)):
            self._sessions.remove(session)
            self._ended = [each for each in self._ended if each[0].session_id != session]

    def _prune(self) -> Write[None]:
        before = rfc3339(self._now - timedelta(days=self._random.randrange(2, 9)))
        yield from self._stores.retention.remove_page("usage", 0, before)

    def _claim(self, run: Run) -> Write[Run]:
        now = self._time()
        claim = self._stores.runs.claim(run.id, "worker", lease_until=now, now=now)
        claimed = yield from claim
        assert claimed is not None
        return claimed

    def _save(self, run: Run, task: Task, used: dict[str, Usage]) -> Write[None]:
        for model, usage in used.items():
            principal, cost = task.origin.principal, self._cost(model, usage)
            save = self._stores.usage.save
            yield from save(run, principal, model, usage=usage, cost=cost, now=self._time())

    def _time(self) -> str:
        return rfc3339(self._now)

    def _cost(self, model: str, usage: Usage) -> float | None:
        price = MODELS[model]
        return None if price is None else price * usage.total


class Recount:
    """The sums of all rows, which are read and added up here."""

    def __init__(self, select: Select) -> None:
        tokens = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"
        self._rows = select(
            "select usage.session_id, sessions.owner, usage.principal, model, recorded, cost,"  # noqa: S608 - our own names
            f" {tokens} from usage join sessions on sessions.id = usage.session_id"
        )

    def sums(self, by: str, owner: str | None) -> dict[str, UsageSum]:
        """Return the sums by key."""
        groups: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self._rows:
            session_id, its_owner, _, model, recorded, *_ = row
            if owner in {None, its_owner}:
                groups[{"day": recorded[:10], "session": session_id, "model": model}[by]].append(
                    row
                )
        return {key: _sum(key, rows) for key, rows in groups.items()}

    def person(self, principal: str, since: str) -> PersonUsage:
        """Return the usage of a person since a day."""
        rows = [row for row in self._rows if row[2] == principal and row[4] >= since]
        cost = sum(row[5] for row in rows if row[5] is not None)
        return PersonUsage(cost, sum(sum(row[6:]) for row in rows if row[5] is None))


def _sum(key: str, rows: Iterable[Row]) -> UsageSum:
    rows = list(rows)
    costs = [row[5] for row in rows if row[5] is not None]
    usage = sum((Usage(*row[6:]) for row in rows), Usage())
    return UsageSum(key, usage, sum(costs) if costs else None)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.first_rows(2)
async def test_sums_are_those_of_all_rows(
    database: Database, stores: Stores, select: Select, seed: int
) -> None:
    history = History(seed, stores)
    for step in range(STEPS):
        await database.write(history.next_step())
        if step % 4 == 0:
            await _compare(database, stores, Recount(select), history.today())


async def _compare(database: Database, stores: Stores, expected: Recount, today: str) -> None:
    for owner in (None, *OWNERS):
        for by in get_args(UsageKey):
            read = partial(stores.usage.sum_by, by, None, owner, limit=500)
            found = await database.read(read)
            sums = expected.sums(by, owner)
            assert {each.key: each.usage for each in found} == {
                key: each.usage for key, each in sums.items()
            }
            assert {each.key: each.cost for each in found} == pytest.approx(
                {key: each.cost for key, each in sums.items()}
            )
    sums = expected.sums("session", None)
    for session in sums:
        read = partial(stores.usage.sum_by, "session", SessionId(session), None, limit=1)
        (of_session,) = await database.read(read)
        assert (of_session.key, of_session.usage) == (session, sums[session].usage)
        assert of_session.cost == pytest.approx(sums[session].cost)
    for person in PEOPLE:
        used = await database.read(partial(stores.usage.get_of_person, person, today))
        wanted = expected.person(person, today)
        assert used.cost == pytest.approx(wanted.cost)
        assert used.unpriced_tokens == wanted.unpriced_tokens


async def test_the_migration_adds_up_what_is_stored(
    database: Database, stores: Stores, select: Select, address: str
) -> None:
    history = History(7, stores)
    for _ in range(STEPS):
        await database.write(history.next_step())
    lists = select("select id, last_task_id, task_count from sessions order by id")

    _change(address, "delete from usage_sums")
    _change(address, "update usage set summed = 0")
    _change(address, "update sessions set last_task_id = '', task_count = 0")
    steps = migrations("postgres" if is_postgres(address) else "sqlite")
    (step,) = (each for each in steps if each.name == "lists_and_sums")
    for statement in step.statements:
        if statement.startswith(("update", "insert")):
            _change(address, statement)

    await _compare(database, stores, Recount(select), history.today())
    assert any(count for _, _, count in lists)
    assert select("select id, last_task_id, task_count from sessions order by id") == lists


def _change(address: str, statement: str) -> None:
    if is_postgres(address):
        shared_server().sql(statement, address.rpartition("/")[2])
    else:
        execute(Path(address), statement)
