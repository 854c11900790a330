"""Refusals of model servers and repairs of calls, for the commands of the owner."""

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter

from internal.agent.domain.errors import StoreError
from internal.agent.domain.lessons import Lesson
from internal.agent.domain.permissions.targets import mcp_server
from internal.agent.store.call_repairs import CallRepairs, read_call_repairs
from internal.agent.store.database import Row
from internal.agent.store.lessons import read_lesson
from internal.agent.store.stores import Stores
from internal.channels.cli.application import Check, ListedLesson, ListedRepairs
from internal.config.loader import Loaded
from internal.storage.database_url import open_database, read_rows


class LessonAdmin:
    """Lists and forgets the lessons in the database of the settings."""

    def __init__(self, loaded: Loaded) -> None:
        self._database = loaded.settings.database

    def list_all(self) -> list[ListedLesson]:
        """Return all lessons. Changes nothing.

        Raises:
            StoreError: the database cannot be read.
        """
        return [_listed(each) for each in self._read()]

    def list_repairs(self) -> list[ListedRepairs]:
        """Return how often the calls of each model were repaired. Changes nothing.

        Raises:
            StoreError: the database cannot be read.
        """
        counts = [read_call_repairs(row) for row in self._rows("call_repairs")]
        return [
            _listed_repairs(provider, model, [*of_model])
            for (provider, model), of_model in groupby(counts, itemgetter(0, 1))
        ]

    def forget(self, model: str | None) -> int:
        """Remove the lessons about a model, or all of them, and return how many there were.

        Raises:
            StoreError: the database cannot be used.
        """
        keys = [each.key for each in self._read() if model is None or each.model == model]

        async def remove() -> int:
            async with open_database(self._database.address) as database:
                return await database.write(partial(Stores().lessons.remove, keys))

        return asyncio.run(remove()) if keys else 0

    def checks(self) -> Iterator[Check]:
        """Yield a check for each tool that a server of a model does not accept."""
        try:
            lessons = self._read()
        except StoreError:  # told by the check of the database
            return
        for each in lessons:
            if each.kind.startswith("tool_") and each.name:
                where = f" of {server}" if (server := mcp_server(each.name)) else ""
                sentence = f"{each.model} at {each.address} does not accept {each.name}{where}:"
                advice = f"larkspur models forget {each.model} tries it again."
                yield Check("tools", "warn", f"{sentence} {each.words}", advice)

    def _read(self) -> list[Lesson]:
        return [read_lesson(row) for row in self._rows("model_lessons")]

    def _rows(self, query: str) -> list[Row]:
        path = self._database.path
        if path is not None and not path.exists():
            return []
        return asyncio.run(read_rows(self._database.address, query))


def _listed(lesson: Lesson) -> ListedLesson:
    changes = [f"{name}: {value}" for name, value in lesson.change.items()]
    return ListedLesson(
        provider=lesson.provider,
        address=lesson.address,
        model=lesson.model,
        refused=" ".join(filter(None, [lesson.kind, lesson.name])),
        since=", ".join(changes) or "not offered",
        words=lesson.words,
        version=lesson.version,
        learned=lesson.learned,
    )


def _listed_repairs(provider: str, model: str, counts: list[CallRepairs]) -> ListedRepairs:
    kinds = {each.kind: each.times for each in counts}
    return ListedRepairs(provider, model, kinds, max(each.last for each in counts))
