"""`kill -9` at every commit of a conversation in Lark, and at random instants of it.

Invariants: one reply, each side effect once or reported as unknown, events without gaps or
duplicates, and a replay equal to the events of a live reader. `make test` kills at two points. On
each kind of database `make test SLOW=yes` kills at 12 points, and `make chaos` at over 350.
"""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from internal.config.home import prepare
from tests.chaos.conversation import DATABASE, run_conversation
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway
from tests.chaos.seeds import seeded
from tests.support.database_files import create_database
from tests.support.process_kills import KILLS, Record

MIN_COMMITS, MAX_COMMITS = 40, 90
"""Between these is the number of commits of a conversation, without the creation of the tables."""
EPISODES, KILLS_OF_EPISODE = 90, 2
FIRST_SECONDS, LAST_SECONDS = 0.5, 1.8
"""Time of the kill after the start of a process: from before it serves to after the reply."""

Environ = dict[str, str]


def count_kills(gateway: RestartingGateway) -> int:
    """Return how many processes ended by a signal that no process can handle."""
    return sum(code in {-signal.SIGKILL, -signal.SIGALRM} for code in gateway.codes)


async def create(folder: Path, environ: Environ) -> None:
    """Create the tables of a file; test_crashes.py kills a process that does."""
    if DATABASE not in environ:
        await create_database(prepare(folder / "home") / "larkspur.db")


async def kill(folder: Path, environ: Environ, plans: Sequence[str], record: Record) -> int:
    """Run the conversation with processes that are killed by the plans; return how many were."""
    await create(folder, environ)
    gateway = await run_conversation(folder, environ, [*plans, NO_CRASH])
    killed = count_kills(gateway)
    record(KILLS, killed)
    return killed


@pytest.mark.parametrize(
    "plans",
    [
        pytest.param(("after:8", "before:9"), marks=pytest.mark.slow),
        pytest.param(("before:13", "after:7"), marks=pytest.mark.slow),
        pytest.param(("after:20", "before:14"), marks=pytest.mark.slow),
        ("before:26", "after:11"),
        pytest.param(("after:33", "before:8"), marks=pytest.mark.slow),
        pytest.param(("before:39", "after:9"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
@pytest.mark.slow
async def test_a_dozen_kills(
    tmp_path: Path, on_database: Environ, plans: tuple[str, ...], record_property: Record
) -> None:
    assert await kill(tmp_path, on_database, plans, record_property) == len(plans)


@pytest.mark.chaos
async def test_the_numbers_cover_every_commit(tmp_path: Path, on_database: Environ) -> None:
    await create(tmp_path, on_database)
    gateway = await run_conversation(tmp_path, on_database, [NO_CRASH])
    assert MIN_COMMITS < gateway.processes[0].commits < MAX_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MAX_COMMITS))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_at_a_commit(
    tmp_path: Path, on_database: Environ, side: str, number: int, record_property: Record
) -> None:
    killed = await kill(tmp_path, on_database, [f"{side}:{number}"], record_property)
    assert killed or number > MIN_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("episode", range(EPISODES))
async def test_kills_at_random_instants(
    tmp_path: Path, on_database: Environ, episode: int, record_property: Record
) -> None:
    rng = seeded(f"conversation {episode}")
    seconds = [rng.uniform(FIRST_SECONDS, LAST_SECONDS) for _ in range(KILLS_OF_EPISODE)]
    await kill(tmp_path, on_database, [f"alarm:{each:.6f}" for each in seconds], record_property)
