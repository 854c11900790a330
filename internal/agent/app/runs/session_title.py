"""Session titles: the first line of the first task, then the title of the first titled plan."""

from functools import partial

from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.events.types import PlanUpdated
from internal.agent.domain.text import truncate
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

MAX_TITLE_CHARACTERS = 80


class PlanSessionTitleRecorder:
    """Stores the title of a run's first titled plan unless somebody named the session.

    The plans of subtasks are left out.
    """

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores
        self._title = ""

    async def on_event(self, envelope: WorkflowEventEnvelope) -> None:
        """Store the title of a plan."""
        match envelope.payload:
            case PlanUpdated() if envelope.is_subtask:
                pass
            case PlanUpdated(title=str(title)) if title.strip() and not self._title:
                self._title = one_line(title)
                await self._database.write(
                    partial(
                        self._stores.sessions.set_title_unless_named,
                        envelope.session_id,
                        self._title,
                    )
                )
            case _:
                pass


def one_line(text: str) -> str:
    """Return the first line of a text, shortened to a title; "" for a blank text."""
    for line in text.splitlines():
        if line.strip():
            return truncate(" ".join(line.split()), MAX_TITLE_CHARACTERS).replace("\n", " ")
    return ""
