"""The model of replies without a run."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from internal.agent.app.plain_completions import PlainCompletions
from internal.agent.ports.llm import ModelBook
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.llm.lessons.book import LessonBook
from internal.llm.model_factory import build_model
from internal.settings.settings import Settings


@asynccontextmanager
async def open_plain_completions(
    settings: Settings,
    database: Database,
    stores: Stores,
    *,
    clock: Clock,
    book: ModelBook,
    lessons: LessonBook,
) -> AsyncGenerator[PlainCompletions]:
    """Open the completions without runs, by the model of titles or else the default one.

    As for titles, the connections are their own, and no request is repeated: clients do that.
    """
    alone = {"fallbacks": (), "max_retries": 0}
    model = build_model(settings.llm.model_copy(update=alone), lessons=lessons)
    name = settings.agent.title_model or settings.llm.model
    try:
        yield PlainCompletions(database, stores, clock, model=model, model_name=name, book=book)
    finally:
        await model.close()
