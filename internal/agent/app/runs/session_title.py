"""PlanSessionTitleRecorder: the first plan with a title names the session."""

from functools import partial

from internal.agent.domain.events.envelope import WorkflowEventEnvelope
from internal.agent.domain.events.types import PlanUpdated
from internal.agent.domain.text import truncate
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

LONGEST_TITLE = 80


class PlanSessionTitleRecorder:
    """Keeps the title of a run's plan, for the session to take when it has none."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database = database
        self._stores = stores
        self._title = ""

    async def on_event(self, envelope: WorkflowEventEnvelope) -> None:
        """Store the title when a plan brings one."""
        match envelope.payload:
            case PlanUpdated(title=str(title)) if title.strip() and not self._title:
                self._title = one_line(title)
                await self._database.write(
                    partial(
                        self._stores.sessions.set_title_if_empty, envelope.session_id, self._title
                    )
                )
            case _:
                pass


def one_line(text: str) -> str:
    """Return the first line of a text, short enough for a title."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return truncate(" ".join(lines[0].split()), LONGEST_TITLE).replace("\n", " ") if lines else ""
