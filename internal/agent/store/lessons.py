"""Refusals of model servers that later requests avoid."""

from collections.abc import Iterable

import msgspec

from internal.agent.domain.lessons import Lesson, LessonKey
from internal.agent.store.database import Batch, Read, Row, Statement, Write
from internal.agent.store.encoding import storable, to_json


class LessonStore:
    """Lessons about model servers, shared by all processes of the database."""

    def save(self, lessons: Iterable[Lesson], /) -> Write[None]:
        """Insert lessons, or replace lessons with the same key."""
        yield Batch("upsert_model_lesson", [_row(each) for each in lessons])

    def list_all(self) -> Read[list[Lesson]]:
        """Return all lessons, in the order of their keys."""
        rows = yield Statement("model_lessons")
        return [read_lesson(row) for row in rows]

    def remove(self, keys: Iterable[LessonKey], /) -> Write[int]:
        """Remove lessons and return how many of them there were."""
        count = 0
        for key in keys:
            count += len((yield Statement("delete_model_lesson", tuple(map(storable, key)))))
        return count


def read_lesson(row: Row) -> Lesson:
    """Return the lesson of a row of the statement `model_lessons`."""
    values = dict(zip(Lesson.__struct_fields__, row, strict=True))
    return Lesson(**{**values, "change": msgspec.json.decode(values["change"])})


def _row(lesson: Lesson) -> Row:
    key = map(storable, lesson.key)
    return (*key, to_json(lesson.change), storable(lesson.words), lesson.version, lesson.learned)
