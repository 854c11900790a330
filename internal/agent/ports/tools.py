"""Tool sources and the context of a call."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import msgspec

from internal.agent.domain.errors import LarkspurError, ToolError
from internal.agent.domain.events.types import Event
from internal.agent.domain.ids import RunId, SessionId, TaskId
from internal.agent.domain.messages import Image
from internal.agent.domain.permissions.network import NO_NETWORK, NetworkAccess
from internal.agent.domain.permissions.outside_paths import NO_OUTSIDE, OutsideAccess
from internal.agent.domain.react.input_forms import InputReply, InputRequest
from internal.agent.domain.tasks import Attachment, RunSpec, TaskWait
from internal.agent.domain.tools import ToolSpec

StoreFile = Callable[[str, int], Awaitable[Attachment]]
"""Stores an open regular file of the session under a name; the descriptor stays open.

Raises: ToolError: it cannot be stored; the message is for the model.
"""


async def refuse_file(_name: str, _descriptor: int) -> Attachment:
    """Refuse to store a file, such as during a preview.

    Raises:
        ToolError: always.
    """
    raise ToolError("files cannot be stored now")


class CallContext(msgspec.Struct, frozen=True):
    """The context of a call. `workspace` is the absolute path of an existing folder.

    `progress` receives live output. It never blocks and may be called from any task of the call,
    but not from another thread. `network` and `outside` are the hosts and files that its commands
    reach. `spec` is the configuration of its task. `reply` continues a call that raised
    `InputRequired`, `wait` a call that raised `TasksAwaited`. `principal` is the person who gave
    the task; `is_private` is true if nobody else but the owner reads its questions. `is_agreed` is
    true if a person agreed to exactly this call.
    """

    session_id: SessionId
    run_id: RunId
    call_id: str
    workspace: str
    progress: Callable[[str], None]
    store_file: StoreFile = refuse_file
    network: NetworkAccess = NO_NETWORK
    outside: OutsideAccess = NO_OUTSIDE
    spec: RunSpec = RunSpec()
    reply: InputReply | None = None
    wait: TaskWait | None = None
    principal: str = ""
    is_private: bool = False
    is_agreed: bool = False


class InputRequired(LarkspurError):
    """A call needs values from people. It is run again with the same arguments and the reply.

    Args:
        request: the requested values.
    """

    def __init__(self, request: InputRequest) -> None:
        super().__init__("values from people are needed")
        self.request = request


class TasksAwaited(LarkspurError):
    """A call waits for tasks. It is run again with the same arguments when some have ended.

    Args:
        wait: the tasks, and the maximum time.
        events: the events of the call so far, stored with its wait.
    """

    def __init__(self, wait: TaskWait, events: tuple[Event, ...] = ()) -> None:
        super().__init__("the end of tasks is awaited")
        self.wait = wait
        self.events = events


@contextmanager
def reported_to_model() -> Iterator[None]:
    """Turn an error within the block into one whose message the model gets.

    Raises:
        ToolError: an error of Larkspur was raised.
    """
    try:
        yield
    except (InputRequired, TasksAwaited):
        raise
    except LarkspurError as error:
        raise ToolError(str(error)) from error


class SharedFiles(msgspec.Struct, frozen=True):
    """Stored files that a call gives to people. Their names are paths in the workspace."""

    files: tuple[Attachment, ...]
    caption: str = ""


class ToolOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call: text and images for the model, and metadata for clients.

    `attachments` are files for clients. `shared` are files for people; the result of sharing them
    is added to the text. `events` are the events of the call, stored with its result, and
    `told_tasks` the subtasks whose ends the text reports.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    metadata: dict[str, Any] = {}
    shared: SharedFiles | None = None
    images: tuple[Image, ...] = ()
    events: tuple[Event, ...] = ()
    told_tasks: tuple[TaskId, ...] = ()


class WithheldTool(NamedTuple):
    """A tool that is not offered. `reason` ends a sentence, such as "not reviewed"."""

    name: str
    reason: str


class WorkspaceFiles(Protocol):
    """Files of the workspace of a call."""

    async def store_files(
        self, context: CallContext, paths: Sequence[str], /, *, deny: Sequence[str] = ()
    ) -> tuple[Attachment, ...]:
        """Store regular files as attachments, by paths as the model writes them.

        Raises:
            ToolError: a path leads outside, one of the rules `deny` forbids to read or share it, it
                is not a file that a tool may read, or it cannot be stored. Files before it may be
                stored; they are removed with the session.
        """
        ...


class ToolSource(Protocol):
    """A set of tools: the built-in tools, the tools for skills, or the tools of MCP servers.

    The names of all sources differ.
    """

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications of the tools that are offered now, in a fixed order."""
        ...

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return the tools that exist and are not offered."""
        ...

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run one call. Cancelling it leaves no process and no half-written file behind.

        Raises:
            ToolError: the call failed; the message is for the model.
            InputRequired: it continues when people have answered.
            TasksAwaited: it continues when tasks have ended.
        """
        ...

    async def preview(self, context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Return the changes that a call would make to files: a unified diff, or a note in [].

        Nothing is changed. Bounded in time and size. Returns "" if the call changes no files or has
        no preview. Names and contents are not escaped: escape them for display.

        Raises:
            ToolError: the call would fail, or change nothing; the message is for the model.
        """
        ...
