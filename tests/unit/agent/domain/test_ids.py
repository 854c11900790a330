"""Identifiers: prefixes, uniqueness and derived ids."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
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


def test_a_new_ksuid_is_one_of_now() -> None:
    before = int(time.time())
    made = [ids.new_ksuid() for _ in range(1000)]
    after = time.time()
    for text in made:
        parsed = Ksuid.from_base62(text)
        assert str(parsed) == text
        assert before <= parsed.timestamp <= after
    assert len({Ksuid.from_base62(text).payload for text in made}) == 1000


def test_a_forked_process_makes_other_ids() -> None:
    ids.new_ksuid()  # the random bytes of the next ones are known
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, ids.new_ksuid()[-20:].encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100).decode() != ids.new_ksuid()[-20:]
    os.close(reader)
    os.close(writer)


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


def test_threads_make_different_ids() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: ids.new_ksuid(), range(2000)))
    assert len(set(made)) == len(made)
