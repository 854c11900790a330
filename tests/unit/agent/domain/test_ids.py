"""Identifiers: prefixes, uniqueness and derived ids."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from ksuid import Ksuid

from internal.agent.domain import ids


def test_new_ids_have_a_prefix_for_their_kind_and_are_unique() -> None:
    made = {
        "session": ids.new_session_id(),
        "task": ids.new_task_id(),
        "run": ids.new_run_id(),
        "msg": ids.new_message_id(),
        "artifact": ids.new_artifact_id(),
    }
    for prefix, name in made.items():
        assert name.startswith(f"{prefix}-")
        assert len(name.removeprefix(f"{prefix}-")) == 27
        assert len(name) <= ids.MAX_ID_CHARS
    assert len({ids.new_run_id() for _ in range(1000)}) == 1000


def test_derived_ids_are_deterministic_and_sorted() -> None:
    run = ids.new_run_id()
    bare = ids.ksuid_part(run)
    assert run == f"run-{bare}"
    assert ids.event_id(run, 3) == f"evt-{bare}-3"
    assert ids.question_id(run, 2) == f"question-{bare}-2"
    assert ids.call_id_prefix(run, 4) == f"{bare}-4"
    assert ids.log_id(run) == f"log-{bare}"
    names = [ids.event_id(run, seq) for seq in range(1, 9)]
    assert all(one < two for one, two in pairwise(names))


def test_a_derived_id_is_another_one_of_the_same_kind_and_time() -> None:
    first = ids.new_task_id()
    derived = ids.derive_id(first)
    assert derived == ids.derive_id(first)
    assert len({first, derived, ids.derive_id(derived)}) == 3
    times = {Ksuid.from_base62(each.removeprefix("task-")).datetime for each in (first, derived)}
    assert len(times) == 1
    assert len(derived) == len(first)


def test_a_new_ksuid_has_the_present_time_and_sorts_by_it() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    made = ids.new_ksuid()
    assert before <= Ksuid.from_base62(made).datetime <= datetime.now(UTC)
    assert str(Ksuid.from_base62(made)) == made
    assert str(Ksuid(before - timedelta(seconds=1))) < made


def test_threads_make_different_ids() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: ids.new_ksuid(), range(2000)))
    assert len(set(made)) == len(made)
