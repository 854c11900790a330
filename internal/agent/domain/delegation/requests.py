"""The tools with which a run creates tasks: their arguments, and the problems with them."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from internal.agent.domain.delegation.subtask import MAX_RUNNING, MAX_SUBTASKS, WorkspaceChoice
from internal.agent.domain.errors import ToolError
from internal.agent.domain.tools import ToolSpec
from internal.i18n.language import Language
from internal.normal_forms.json_schema import schema_components

MAX_INSTRUCTION_CHARACTERS = 50_000
MAX_MESSAGE_CHARACTERS = 20_000

_Line = Annotated[str, Meta(max_length=500)]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Ids = Annotated[
    tuple[_Name, ...],
    Meta(description="Ids or numbers of tasks; none for all.", max_length=MAX_SUBTASKS),
]


class AgentProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who works on a task, if no stored profile fits."""

    role: Annotated[_Line, Meta(description="Such as `competitor analyst`.")] = ""
    name: Annotated[_Line, Meta(description="A short name.")] = ""
    goal: _Line = ""
    tone: _Line = ""


class NewTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task to create."""

    instruction: Annotated[
        str, Meta(description="The whole task: the worker sees nothing of this conversation.")
    ]
    agent_profile: Annotated[
        _Name | AgentProfile | None, Meta(description="The name of a profile, or a new one.")
    ] = None
    skill_ids: (
        Annotated[tuple[_Name, ...], Meta(description="Skills it may load.", max_length=50)] | None
    ) = None
    tools: (
        Annotated[tuple[_Name, ...], Meta(description="Tools it gets.", max_length=100)] | None
    ) = None
    files: Annotated[
        tuple[_Name, ...], Meta(description="Files of the workspace to hand over.", max_length=20)
    ] = ()
    workspace: Annotated[
        WorkspaceChoice,
        Meta(description="Your folder, a new one, or a git worktree with its own branch."),
    ] = "shared"
    depends_on: Annotated[
        tuple[_Name, ...],
        Meta(description="Tasks that must be completed first.", max_length=MAX_SUBTASKS),
    ] = ()
    model: Annotated[_Name | None, Meta(description="Another model.")] = None
    max_cost: Annotated[float, Meta(description="US dollars.", gt=0)] | None = None


class CreateTaskCall(NewTask, frozen=True, forbid_unknown_fields=True):
    """Give work to a background worker and go on; several calls in one reply run in parallel.

    You are told when it ends. Its files in output/ reach the person.
    """

    tool: ClassVar[str] = "create_task"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Create a task", "zh": "创建任务"}
    idempotent: ClassVar[bool] = True


class SubagentCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Give one or several tasks to workers and wait for all of their results.

    In `depends_on` of these tasks a number is the place in the list, from 1.
    """

    tool: ClassVar[str] = "subagent"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Delegate", "zh": "委派子任务"}
    idempotent: ClassVar[bool] = True
    prompt: Annotated[str, Meta(description="One task; `tasks` for several.")] = ""
    tasks: Annotated[tuple[NewTask, ...], Meta(max_length=MAX_SUBTASKS)] = ()
    mode: Literal["parallel", "serial"] = "parallel"
    max_parallel: Annotated[int, Meta(ge=1, le=MAX_RUNNING)] = MAX_RUNNING

    @property
    def wanted(self) -> tuple[NewTask, ...]:
        """The tasks to create."""
        return (*((NewTask(self.prompt),) if self.prompt.strip() else ()), *self.tasks)


class TaskStatusCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See what your tasks do. To wait for them, call `task_result` instead of asking again."""

    tool: ClassVar[str] = "task_status"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Look at tasks", "zh": "查看任务状态"}
    idempotent: ClassVar[bool] = True
    ids: _Ids = ()


class TaskResultCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Get the results of tasks; waits until all have ended, unless `wait` is false."""

    tool: ClassVar[str] = "task_result"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Get results", "zh": "获取任务结果"}
    idempotent: ClassVar[bool] = True
    ids: _Ids = ()
    wait: bool = True
    wait_minutes: Annotated[int, Meta(ge=1, le=1_440)] = 60


class TaskMessageCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Send a message to a task that has not ended."""

    tool: ClassVar[str] = "task_message"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Message a task", "zh": "给任务发消息"}
    idempotent: ClassVar[bool] = True
    id: _Name
    text: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARACTERS)]


class TaskCancelCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stop a task and the tasks below it."""

    tool: ClassVar[str] = "task_cancel"
    tool_title: ClassVar[dict[Language, str]] = {"en": "Stop a task", "zh": "停止任务"}
    idempotent: ClassVar[bool] = True
    id: _Name


DelegationCall = (
    CreateTaskCall
    | SubagentCall
    | TaskStatusCall
    | TaskResultCall
    | TaskMessageCall
    | TaskCancelCall
)
_CALLS: tuple[type[DelegationCall], ...] = (
    CreateTaskCall,
    SubagentCall,
    TaskStatusCall,
    TaskResultCall,
    TaskMessageCall,
    TaskCancelCall,
)


_CHECKED = frozenset({"title", "default", "minLength", "maxLength", "maxItems"})
"""Members of a schema that cost tokens and that the arguments are checked for anyway."""


def _shortened(schema: Any) -> Any:
    """Return a JSON Schema without the parts that the model does not need."""
    if isinstance(schema, list):
        return [_shortened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    short = {key: _shortened(value) for key, value in schema.items() if key not in _CHECKED}
    options = [each for each in short.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        del short["anyOf"]
        short |= options[0]
    elif options:
        short["anyOf"] = options
    return short


def _spec(call: type[DelegationCall]) -> ToolSpec:
    schemas = schema_components([call], ref_template="#/$defs/{name}")[1]
    parameters = _shortened(schemas.pop(call.__name__))
    parameters.pop("description", None)
    if schemas:
        parameters["$defs"] = {name: _shortened(schema) for name, schema in schemas.items()}
        # the description of `create_task` explains the members
        for schema in parameters["$defs"].values() if call is SubagentCall else ():
            for member in (schema, *schema["properties"].values()):
                member.pop("description", None)
    description = " ".join((call.__doc__ or "").split())
    return ToolSpec(
        call.tool,
        description,
        parameters,
        "read",
        idempotent=call.idempotent,
        title=call.tool_title,
    )


DELEGATION_SPECS: tuple[ToolSpec, ...] = tuple(map(_spec, _CALLS))
"""A call changes nothing by itself: a task may do at most what its creator may, and asks people
as that does."""
DELEGATION_TOOLS = frozenset(spec.name for spec in DELEGATION_SPECS)
_BY_NAME: dict[str, type[DelegationCall]] = {call.tool: call for call in _CALLS}


def parse_call(name: str, arguments: Mapping[str, Any]) -> DelegationCall:
    """Return the parsed call of one of these tools.

    Raises:
        ToolError: an argument is missing, unknown or of another type, or too long.
    """
    try:
        call = msgspec.convert(arguments, _BY_NAME[name], strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"Not done: {error}.") from error
    wanted: Sequence[NewTask] = ()
    if isinstance(call, CreateTaskCall):
        wanted = (call,)
    elif isinstance(call, SubagentCall):
        wanted = call.wanted
        if not wanted:
            raise ToolError("Not done: give a prompt, or tasks.")
    for task in wanted:
        _check_instruction(task.instruction)
    return call


def _check_instruction(text: str) -> None:
    if not text.strip():
        raise ToolError("Not done: the instruction is empty.")
    if len(text) > MAX_INSTRUCTION_CHARACTERS:
        raise ToolError(
            f"Not done: the instruction has {len(text):,} characters; the maximum is"
            f" {MAX_INSTRUCTION_CHARACTERS:,}. Put long material into a file and name it in"
            " `files`."
        )


def order_by_dependencies(tasks: Sequence[NewTask]) -> list[int]:
    """Return the places of tasks of one list, from 0, each after its dependencies.

    Raises:
        ToolError: they depend on each other in a circle, or on a place that does not exist.
    """
    graph: dict[int, set[int]] = {}
    for place, task in enumerate(tasks):
        graph[place] = set()
        for each in task.depends_on:
            if not each.isdecimal():
                continue
            if not 1 <= int(each) <= len(tasks):
                raise ToolError(
                    f"Not done: depends_on names task {each}, and there are {len(tasks)} tasks."
                )
            graph[place].add(int(each) - 1)
    try:
        # the places that are free come first, in the order of the list
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " → ".join(str(place + 1) for place in reversed(error.args[1]))
        raise ToolError(f"Not done: tasks wait for each other in a circle: {circle}.") from error
