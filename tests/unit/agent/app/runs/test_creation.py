"""Creation of tasks and sessions."""

from functools import partial

import msgspec
import pytest

from internal.agent.app.runs.active import claim_run
from internal.agent.app.runs.creation import (
    MAX_INSTRUCTION_CHARACTERS,
    Submission,
    clean_instruction,
    create_task,
    inbox_message,
    new_task_ids,
    open_session,
    resume_submission,
)
from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict, InvalidRequest
from internal.agent.domain.ids import RunId
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.secrets import register_secret
from internal.agent.domain.tasks import ClaimedTask, Origin, Run, RunSpec, Task
from internal.agent.domain.unwritten_messages import RESUME_PROMPT
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, a_run, a_task

SUBMISSION = Submission("count", RunSpec(), "web")


def test_an_instruction_can_be_stored() -> None:
    assert clean_instruction(HOSTILE) == CLEANED.replace("half \ufffd", "half ?")
    for text, message in (
        (" \n", "empty"),
        ("x" * (MAX_INSTRUCTION_CHARACTERS + 1), "200,001 characters; the maximum is 200,000"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            clean_instruction(text)


class Slot:
    """A free place, for the run of the next task."""

    def __init__(self, stores: Stores, run_id: RunId) -> None:
        self._stores, self._run_id = stores, run_id

    def claim(self, task: Task, events: int) -> Write[Run | None]:
        return claim_run(
            self._stores, self._run_id, "worker", lease_until=T1, now=T0, new=(task, events)
        )

    async def start(self, claimed: ClaimedTask) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    "text",
    ["count", "count\nto \U0001f600 \\u0000", "half \ud83d", "NUL \0", "the key sk-1234567890"],
)
async def test_a_task_that_starts_at_once_is_the_one_that_is_stored(
    database: Database, stores: Stores, text: str
) -> None:
    register_secret("sk-1234567890")
    ids, origin = new_task_ids(), Origin("web", "local", thread_id=text)
    submission = Submission(text, RunSpec(policy=Policy(allow=("shell(ls *)",))), "web")
    await database.write(
        partial(open_session, stores, ids.session_id, LOCAL_OWNER, channel="web", now=T0)
    )
    create = partial(create_task, stores, submission, ids.session_id, ids=ids, origin=origin)
    created = await database.write(partial(create, now=T0, slot=Slot(stores, ids.run_id)))
    assert created.claimed is not None
    assert created.claimed.task == await database.read(partial(stores.tasks.get, ids.task_id))
    run = await database.read(partial(stores.runs.get, ids.run_id))
    assert created.claimed.run == run
    assert run is not None
    assert [event.seq for event in created.events] == [1, 2, 3, 4]
    assert (run.status, run.last_seq) == ("running", 4)


async def test_a_task_is_created_with_a_queued_run_and_its_first_events(
    database: Database, stores: Stores
) -> None:
    ids, origin = new_task_ids(), Origin("web", "local")
    await database.write(
        partial(open_session, stores, ids.session_id, LOCAL_OWNER, channel="web", now=T0)
    )
    created = await database.write(
        partial(create_task, stores, SUBMISSION, ids.session_id, ids=ids, origin=origin, now=T0)
    )
    assert [(event.seq, event.event) for event in created.events] == [
        (1, "workflow.input.received"),
        (2, "workflow.lifecycle.updated"),
    ]
    task = await database.read(partial(stores.tasks.get, ids.task_id))
    run = await database.read(partial(stores.runs.get, ids.run_id))
    assert task is not None
    assert run is not None
    assert (task.instruction, task.status, task.lane) == ("count", "queued", ids.session_id)
    assert (run.status, run.fence, run.terminal) == ("queued", 0, False)


def test_the_inbox_row_of_a_submission_contains_its_text() -> None:
    ids = new_task_ids()
    row = inbox_message(SUBMISSION, LOCAL_OWNER, ids=ids, now=T0)
    assert (row.message_id, row.principal, row.raw) == (
        ids.message_id,
        "local",
        '{"text":"count","prompt":"","attachments":[]}',
    )

    accepted = InboundMessage("lark", "app", "m1", "chat", "ann", "{raw}", T0)
    submission = msgspec.structs.replace(SUBMISSION, message=accepted)
    row = inbox_message(submission, LOCAL_OWNER, ids=ids, now=T0)
    assert row == msgspec.structs.replace(
        accepted, raw='{"text":"count","prompt":"","attachments":[]}'
    )


def test_an_ended_task_is_resumed_in_its_session() -> None:
    task = a_task(status="failed", stop_reason="error")
    run = a_run(status="failed")
    submission = resume_submission(task, run, "cli", None)
    assert (submission.instruction, submission.is_resumed) == ("count", True)
    assert submission.prompt == f"{RESUME_PROMPT}\n\ncount"
    assert submission.resumes == run.id
    assert (submission.session_id, submission.channel) == (task.session_id, "cli")

    # a task of an earlier version has the prompt in its instruction
    again = msgspec.structs.replace(task, instruction=submission.prompt)
    resumed = resume_submission(again, run, "cli", None)
    assert (resumed.instruction, resumed.prompt) == ("count", submission.prompt)
    stopped = a_run(status="cancelled")
    assert resume_submission(task, stopped, "cli", None).resumes is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "running"}, "has not ended: it is running"),
        ({"status": "completed", "stop_reason": "final_answer"}, "nothing to resume"),
    ],
)
def test_only_ended_tasks_without_an_answer_can_be_resumed(
    fields: dict[str, str], message: str
) -> None:
    with pytest.raises(Conflict, match=message):
        resume_submission(a_task(**fields), a_run(), "cli", None)
