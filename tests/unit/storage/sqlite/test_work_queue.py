"""The queue of the writer thread."""

import os
import threading
from concurrent.futures import Future
from contextlib import closing
from queue import Empty

import pytest

from internal.agent.store.database import Read
from internal.storage.pending_work import PendingWork
from internal.storage.sqlite.work_queue import WorkQueue

PATIENCE_SECONDS = 30.0


def work() -> PendingWork:
    def nothing() -> Read[None]:
        yield from ()

    return PendingWork(nothing, Future())


def test_items_come_in_order_and_from_any_thread() -> None:
    with closing(WorkQueue(None)) as queue:
        count, producers = 2_000, 4
        given: list[list[PendingWork]] = [[work() for _ in range(count)] for _ in range(producers)]

        def produce(items: list[PendingWork]) -> None:
            for item in items:
                queue.put(item)

        threads = [threading.Thread(target=produce, args=(items,)) for items in given]
        for thread in threads:
            thread.start()
        taken = [queue.get(PATIENCE_SECONDS) for _ in range(count * producers)]
        for thread in threads:
            thread.join()

        of_producer = {id(item): number for number, items in enumerate(given) for item in items}
        for number, items in enumerate(given):
            assert [item for item in taken if of_producer[id(item)] == number] == items
        with pytest.raises(Empty):
            queue.get_nowait()


def test_a_waiting_thread_is_woken() -> None:
    with closing(WorkQueue(None)) as queue:
        taken: list[PendingWork | None] = []

        def consume() -> None:
            while True:
                taken.append(queue.get(PATIENCE_SECONDS))
                if taken[-1] is None:
                    return
                answered.release()

        answered = threading.Semaphore(0)
        thread = threading.Thread(target=consume)
        thread.start()
        given = [work() for _ in range(200)]
        for item in given:  # one at a time, so that the thread waits for each
            queue.put(item)
            assert answered.acquire(timeout=PATIENCE_SECONDS)
        queue.put(None)
        thread.join(PATIENCE_SECONDS)
        assert taken == [*given, None]


def test_the_wait_ends_with_the_time() -> None:
    with closing(WorkQueue(None)) as queue, pytest.raises(Empty):
        queue.get(0.001)


def test_the_wait_ends_when_the_descriptor_can_be_read() -> None:
    reader, writer = os.pipe()
    try:
        with closing(WorkQueue(reader)) as queue:
            os.write(writer, b"x")
            with pytest.raises(Empty):
                queue.get(PATIENCE_SECONDS)
            queue.put(None)
            assert queue.get(PATIENCE_SECONDS) is None  # added work comes first
    finally:
        os.close(reader)
        os.close(writer)
