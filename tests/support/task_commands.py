"""Commands for tasks on a database of their own."""

from functools import partial

from internal.agent.app.runs.creation import Submission, Submitted, new_task_ids
from internal.agent.app.task_commands import RecallRequest, recall_message, submit_task
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import Run, RunSpec, Task
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, claim_run

ANN = Principal("lark:app:ou_1", "Ann", frozenset({"talk"}))


TASK = Submission("count", RunSpec(), "web")


class Commands:
    """Runs the commands on a database."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self.database, self.stores = database, stores

    async def submit(
        self, submission: Submission = TASK, principal: Principal = LOCAL_OWNER
    ) -> Submitted:
        submitted, _ = await self.database.write(
            partial(submit_task, self.stores, submission, principal, ids=new_task_ids(), now=T0)
        )
        return submitted

    async def running(self) -> Submitted:
        submitted = await self.submit()
        await claim_run(self.database, self.stores, await self.run(submitted))
        return submitted

    async def run(self, submitted: Submitted) -> Run:
        found = await self.database.read(partial(self.stores.runs.get, submitted.run_id))
        assert found is not None
        return found

    async def task(self, submitted: Submitted) -> Task:
        found = await self.database.read(partial(self.stores.tasks.get, submitted.task_id))
        assert found is not None
        return found

    async def message(self, message_id: str, text: str, by: Principal = ANN) -> Submission:
        """Return a submission from an accepted chat message."""
        message = InboundMessage("lark", "app", message_id, "oc_1", by.id, "{}", T0)
        await self.database.write(partial(self.stores.inbox.accept, message))
        return Submission(text, RunSpec(), "lark", scope="oc_1", message=message)

    async def recall(self, message_id: str) -> tuple[str, str | None]:
        request = RecallRequest("lark", "app", message_id, ANN.id)
        result, recalled, _ = await self.database.write(
            partial(recall_message, self.stores, request, ids=new_task_ids(), now=T1)
        )
        return result, recalled and recalled.run_id
