"""Values shared by the stages of a run, and the events that announce a stage."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from internal.agent.app.background_task import run_to_completion
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.events.writer import Emit, SerializingEventListener
from internal.agent.app.hosts.host import WorkspaceUse
from internal.agent.domain.artifacts import Artifact
from internal.agent.domain.delegation.subtask import WorkspaceChoice
from internal.agent.domain.errors import LarkspurError, LeaseLost, StoreError
from internal.agent.domain.events.envelope import RunIds
from internal.agent.domain.events.types import Event, NodeCompleted, NodeFailed, NodeStarted
from internal.agent.domain.tasks import ClaimedTask, Run, Task
from internal.agent.domain.text import truncate_json
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores

STAGES = ("prepare", "execute", "summarize", "persist")

INTERNAL_ERROR_CODE = "internal_error"
INTERNAL_ERROR = "Something went wrong inside Larkspur; the log has the cause."

WorkspaceResolver = Callable[[Task, WorkspaceChoice], str]
"""Returns the workspace folder of a task. Blocks. Raises: RequestError.

A task that no run created has the choice `shared`.
"""


class RunServices(msgspec.Struct, frozen=True):
    """The services that every run uses.

    `create_workspace` creates the folder of a session that `workspaces` only names.
    """

    database: Database
    stores: Stores
    broadcaster: EventBroadcaster
    clock: Clock
    workspaces: WorkspaceResolver
    create_workspace: WorkspaceResolver


class KnownFiles(msgspec.Struct):
    """Files for people that an attempt of a run knows; used while `lock` is held.

    `newest` are the newest artifacts of the session by name and `sources` the identities of their
    files, once they `are_read`; `seen` are the identities of the files in the output folder by
    path, and `told` are the problems that the model knows already. `has_folders`: the workspace
    was created. The contents of the files `kept`, or of all, are kept to record the changes.
    """

    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    are_read: bool = False
    has_folders: bool = False
    keeps_all: bool = False
    kept: set[str] = msgspec.field(default_factory=set)
    newest: dict[str, Artifact] = msgspec.field(default_factory=dict)
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    seen: dict[str, str] = msgspec.field(default_factory=dict)
    told: set[str] = msgspec.field(default_factory=set)


class RunContext(msgspec.Struct, frozen=True):
    """One attempt of a run.

    `deadline` is when it times out, in seconds of the event loop. `use` is begun before files of
    the session are used. `claimed` is given if this process has just stored the run.
    """

    ids: RunIds
    run: Run
    task: Task
    stream: SerializingEventListener
    use: WorkspaceUse
    deadline: float = math.inf
    claimed: ClaimedTask | None = None
    files: KnownFiles = msgspec.field(default_factory=KnownFiles)


async def find_workspace(services: RunServices, context: RunContext) -> str:
    """Return the workspace of a run; see `workspace_of`."""
    return await run_to_completion(workspace_of, services, context)


def workspace_of(services: RunServices, context: RunContext) -> str:
    """Return the workspace of a run, an absolute path. Blocks.

    The folder of a session need not exist yet.

    Raises:
        RequestError: it cannot be used.
    """
    return services.workspaces(context.task, _choice(context))


async def create_workspace(services: RunServices, context: RunContext) -> None:
    """Create the workspace of a run and its folders for files, once in an attempt of the run.

    Most runs call no tool and need none. The session is bound to this host before; see
    `WorkspaceUse`.

    Raises:
        LeaseLost, RunHandedOver: see `WorkspaceUse.begin`.
        RequestError: it cannot be used.
        StoreUnavailable: it cannot be created.
    """
    if not context.files.has_folders:
        await context.use.begin()
        await run_to_completion(services.create_workspace, context.task, _choice(context))
        context.files.has_folders = True


def _choice(context: RunContext) -> WorkspaceChoice:
    subtask = context.run.subtask
    return "shared" if subtask is None else subtask.workspace


def stage_started(name: str) -> NodeStarted:
    """Return the event that announces a stage."""
    return NodeStarted(node_id=name, step_index=STAGES.index(name) + 1, step_description=name)


def stage_completed(name: str, started_at: float, clock: Clock) -> Event:
    """Return the event that reports the end of a stage; `started_at` is in monotonic seconds."""
    return NodeCompleted(node_id=name, duration_ms=round((clock.monotonic() - started_at) * 1000))


@asynccontextmanager
async def stage(
    name: str, emit: Emit, clock: Clock, *, is_announced: bool = False
) -> AsyncGenerator[None]:
    """Emit the events for the start, unless it is announced, and the end of a stage.

    On cancellation no end is emitted: the coordinator knows the reason and closes open nodes.
    """
    started_at = clock.monotonic()
    if not is_announced:
        await emit(stage_started(name))
    try:
        yield
    except (LeaseLost, StoreError):
        raise  # nothing can be stored any more
    except Exception as error:
        await emit(
            NodeFailed(
                node_id=name,
                phase=name,
                error=truncate_json(describe_error(error)),
                recoverable=False,
            )
        )
        raise
    await emit(stage_completed(name, started_at, clock))


def describe_error(error: Exception) -> str:
    """Return the sentence of an error for people; unexpected errors have a fixed one."""
    return str(error) if isinstance(error, LarkspurError) else INTERNAL_ERROR
