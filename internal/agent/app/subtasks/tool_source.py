"""The tools with which a model creates, follows and stops tasks. They are stored at once."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.runs.creation import new_task_ids
from internal.agent.app.subtasks.creation import (
    CallOfRun,
    SubtaskIds,
    SubtaskSubmission,
    create_subtasks,
    find_created,
)
from internal.agent.app.subtasks.endings import has_message
from internal.agent.app.subtasks.messages import cancel_subtask, message_subtask
from internal.agent.app.subtasks.results import completed_event, load_results
from internal.agent.domain.delegation.reports import (
    POLLING_HINT,
    SubtaskResult,
    describe_results,
    describe_status,
)
from internal.agent.domain.delegation.requests import (
    DELEGATION_SPECS,
    AgentProfile,
    CreateTaskCall,
    NewTask,
    SubagentCall,
    TaskCancelCall,
    TaskMessageCall,
    TaskResultCall,
    TaskStatusCall,
    order_by_dependencies,
    parse_call,
)
from internal.agent.domain.delegation.rights import (
    Grant,
    describe_profile,
    narrow_profile,
    refuse_options,
    subtask_spec,
)
from internal.agent.domain.delegation.subtask import MAX_RUNNING, Subtask
from internal.agent.domain.errors import NotFound, ToolError
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.events.types import (
    Event,
    SubflowCompleted,
    TaskCompleted,
    TaskDispatched,
)
from internal.agent.domain.ids import RunId, TaskId, new_run_id, new_task_id
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.tasks import Profile, Run, Task, TaskWait
from internal.agent.domain.text import truncate_json
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.runtime import Clock
from internal.agent.ports.skills import Skills
from internal.agent.ports.tools import (
    CallContext,
    TasksAwaited,
    ToolOutcome,
    WithheldTool,
    WorkspaceFiles,
    reported_to_model,
)
from internal.agent.ports.workspaces import Worktrees
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores

SUBAGENT_WAIT = timedelta(hours=24)
LEASE = timedelta(seconds=60)
"""The first lease of a subtask that belongs to a terminal; its process renews it."""
MAX_STATUS_CALLS = 3
"""Status calls of a run without news after which the result says how to wait."""
WORKTREE_START = "Its worktree starts at HEAD: uncommitted changes are not in it."
_MAX_POLLING_RUNS = 1_000


class CreatorFolders(NamedTuple):
    """The folders that a creator gives its subtasks: files of its own folder, and worktrees."""

    files: WorkspaceFiles
    worktrees: Worktrees


class SubtaskChoices(NamedTuple):
    """The choices for a subtask.

    Attributes:
        profile: returns a profile by name; raises an error that names the nearest.
        tools: returns the names of all tools that exist.
        doubt_model: returns why the provider may not have a model, a sentence, or "".
    """

    profile: Callable[[str], Profile]
    tools: Callable[[], Iterable[str]]
    doubt_model: Callable[[str], str]


class DelegationTools:
    """The tools for subtasks. Implements `ToolSource`.

    Args:
        database: where tasks are stored.
        stores: the statements.
        broadcaster: gets the first events of new tasks.
        clock: the time.
        skills: the skills that a person has reviewed.
        folders: the files of the creator's folder, and worktrees of it.
        choices: what there is to choose for a subtask.
    """

    def __init__(
        self,
        database: Database,
        stores: Stores,
        broadcaster: EventBroadcaster,
        *,
        clock: Clock,
        skills: Skills,
        folders: CreatorFolders,
        choices: SubtaskChoices,
    ) -> None:
        self._database = database
        self._stores = stores
        self._broadcaster = broadcaster
        self._clock = clock
        self._skills = skills
        self._folders = folders
        self._choices = choices
        self._polls: OrderedDict[RunId, tuple[int, str]] = OrderedDict()
        """How often a run has seen the same status, and that status."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications."""
        return DELEGATION_SPECS

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return (): every tool is offered."""
        return ()

    async def preview(self, _context: CallContext, name: str, arguments: dict[str, Any], /) -> str:
        """Check the arguments and return "": a call changes no files."""
        parse_call(name, arguments)
        return ""

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Run a call.

        Raises:
            ToolError: an argument is wrong, or the task cannot be created.
            TasksAwaited: it continues when tasks have ended.
        """
        with reported_to_model():
            match parse_call(name, arguments):
                case CreateTaskCall() as wanted:
                    return await self._create_one(context, wanted)
                case SubagentCall() as wanted:
                    return await self._delegate(context, wanted)
                case TaskStatusCall(ids):
                    return await self._status(context, ids)
                case TaskResultCall() as wanted:
                    return await self._result(context, wanted)
                case TaskMessageCall(task_id, text):
                    return await self._message(context, task_id, text)
                case TaskCancelCall(task_id):
                    return await self._cancel(context, task_id)

    async def _create_one(self, context: CallContext, wanted: CreateTaskCall) -> ToolOutcome:
        [result] = await self._create(context, [wanted], MAX_RUNNING)
        waits = f" It starts when {', '.join(wanted.depends_on)} are completed." * bool(
            wanted.depends_on
        )
        start = f" {WORKTREE_START}" * (wanted.workspace == "worktree")
        text = (
            f"{result.task.id} ({result.path}) was created and runs in the background.{waits}"
            f"{start} You are told when it has ended; `task_result` waits for it."
        )
        return ToolOutcome(text, events=tuple(_dispatched([result])))

    async def _delegate(self, context: CallContext, wanted: SubagentCall) -> ToolOutcome:
        most = 1 if wanted.mode == "serial" else wanted.max_parallel
        created = await self._create(context, wanted.wanted, most)
        ids = tuple(each.task.id for each in created)
        dispatched = tuple(_dispatched(created)) if context.wait is None else ()
        try:
            outcome = await self._results(context, ids, SUBAGENT_WAIT)
        except TasksAwaited as awaited:
            raise TasksAwaited(awaited.wait, dispatched) from None
        ended = [each for each in outcome.events if isinstance(each, TaskCompleted)]
        completed: list[Event] = []
        if len(ended) == len(ids):
            success = sum(each.status == "completed" for each in ended)
            done = SubflowCompleted(
                call_id=context.call_id, success=success, failed=len(ended) - success
            )
            completed.append(done)
        events = (*dispatched, *outcome.events, *completed)
        return ToolOutcome(outcome.text, events=events, told_tasks=outcome.told_tasks)

    async def _create(
        self, context: CallContext, wanted: Sequence[NewTask], max_parallel: int
    ) -> list[SubtaskResult]:
        """Store the subtasks of a call, or find the ones that it has stored before."""
        call = CallOfRun(context.run_id, context.call_id, max_parallel)
        run, creator, left = await self._database.read(partial(self._read_creator, context.run_id))
        created = await self._database.read(partial(find_created, self._stores, call, creator))
        if not created:
            if creator.spec.policy.mode is Mode.PLAN:
                raise ToolError("Not created: in plan mode no tasks are created.")
            order = order_by_dependencies(wanted)
            submissions = [
                await self._submission(
                    context,
                    creator,
                    wanted[place],
                    place=str(place + 1) if len(wanted) > 1 else "",
                    subtask=run.subtask,
                    max_cost=left,
                )
                for place in order
            ]
            created = await self._store(call, submissions, creator, run)
        return await self._load(created)

    def _read_creator(self, run_id: RunId) -> Read[tuple[Run, Task, float | None]]:
        """Return a run, its task, and the remaining budget of the outermost task in US dollars."""
        run, task = yield from self._read_run(run_id)
        place = run.subtask
        limit = task.spec.limits.max_cost if place is None else place.max_cost
        if limit is None:
            return run, task, None
        root = task.id if place is None else place.root_task_id
        used = yield from self._stores.subtasks.get_cost(root)
        if used >= limit:
            raise ToolError(
                f"Not created: {used:.2f} of {limit:.2f} US dollars are used, and tasks share them."
            )
        return run, task, limit - used

    async def _submission(
        self,
        context: CallContext,
        creator: Task,
        wanted: NewTask,
        *,
        place: str,
        subtask: Subtask | None,
        max_cost: float | None,
    ) -> SubtaskSubmission:
        tools = [*self._choices.tools()]
        profile = narrow_profile(creator.spec.profile, self._find_profile(creator, wanted), tools)
        grant = Grant(creator.spec, profile, tools, self._choices.doubt_model)
        if refusal := refuse_options(grant, wanted):
            raise ToolError(f"Not created: {refusal}")
        depth, choice = (1, "shared") if subtask is None else (subtask.depth + 1, subtask.workspace)
        spec = subtask_spec(
            creator.spec,
            profile,
            wanted,
            workspace=_named_folder(context, creator, choice),
            depth=depth,
            max_cost=max_cost,
        )
        await self._check_skills(context, spec.skills, wanted)
        if wanted.workspace == "worktree":
            await asyncio.to_thread(self._folders.worktrees.describe, context.workspace)
        attachments = await self._folders.files.store_files(
            context, wanted.files, deny=creator.spec.policy.deny
        )
        described = isinstance(wanted.agent_profile, AgentProfile)
        role = profile.role if described else profile.name if wanted.agent_profile else ""
        return SubtaskSubmission(
            SubtaskIds(new_task_id(), new_run_id()),
            wanted.instruction,
            spec,
            role,
            wanted.workspace,
            wanted.depends_on,
            attachments,
            place,
        )

    def _find_profile(self, creator: Task, wanted: NewTask) -> Profile:
        match wanted.agent_profile:
            case None:
                return creator.spec.profile
            case AgentProfile() as described:
                return describe_profile(creator.spec.profile, described)
            case name:
                return self._choices.profile(name)

    async def _check_skills(
        self, context: CallContext, granted: tuple[str, ...] | None, wanted: NewTask
    ) -> None:
        if not wanted.skill_ids:
            return
        catalogue = await asyncio.to_thread(self._skills.describe, context.workspace, granted)
        if catalogue.problems:
            raise ToolError(f"Not created: {' '.join(catalogue.problems)}")

    async def _store(
        self,
        call: CallOfRun,
        submissions: Sequence[SubtaskSubmission],
        creator: Task,
        run: Run,
    ) -> list[TaskId]:
        now = self._clock.now()
        limit = creator.spec.limits.max_cost if run.subtask is None else run.subtask.max_cost
        created, events = await self._database.write(
            partial(
                create_subtasks,
                self._stores,
                call,
                submissions,
                max_cost=limit,
                lease_until=rfc3339(now + LEASE),
                now=rfc3339(now),
            )
        )
        self._publish(events)
        return created

    async def _status(self, context: CallContext, ids: Sequence[str]) -> ToolOutcome:
        results = await self._find(context, ids)
        text = "\n".join(map(describe_status, results)) or "There are no tasks."
        count, before = self._polls.pop(context.run_id, (0, ""))
        count = count + 1 if text == before else 1
        self._polls[context.run_id] = count, text
        if len(self._polls) > _MAX_POLLING_RUNS:
            self._polls.popitem(last=False)
        if count >= MAX_STATUS_CALLS and not all(each.has_ended for each in results):
            text = f"{text}\n\n{POLLING_HINT}"
        return ToolOutcome(text)

    async def _result(self, context: CallContext, wanted: TaskResultCall) -> ToolOutcome:
        found = await self._find(context, wanted.ids)
        if not found:
            return ToolOutcome("There are no tasks.")
        ids = tuple(each.task.id for each in found)
        wait = timedelta(minutes=wanted.wait_minutes) if wanted.wait else None
        return await self._results(context, ids, wait)

    async def _results(
        self, context: CallContext, ids: tuple[TaskId, ...], wait: timedelta | None
    ) -> ToolOutcome:
        """Return the results of tasks.

        Raises:
            TasksAwaited: some have not ended, and there is time and no message of a person.
        """
        results = await self._load(ids)
        unfinished = [each for each in results if not each.has_ended]
        note = ""
        if unfinished and wait is not None:
            now = self._clock.now()
            until = rfc3339(now + wait) if context.wait is None else context.wait.until
            is_written_to = await self._database.read(
                partial(has_message, self._stores, context.run_id)
            )
            if until > rfc3339(now) and not (is_written_to and context.wait is not None):
                raise TasksAwaited(TaskWait(ids, until))
            note = "\n\nNot all have ended: " + (
                "a person has written. Read the message first, then wait again."
                if is_written_to
                else "the time to wait is over. Wait again, or go on without them."
            )
        ended = [each for each in results if each.has_ended]
        return ToolOutcome(
            f"{describe_results(results)}{note}",
            events=tuple(map(completed_event, ended)),
            told_tasks=tuple(each.task.id for each in ended),
        )

    async def _message(self, context: CallContext, name: str, text: str) -> ToolOutcome:
        [result] = await self._find(context, [name])
        work = partial(
            message_subtask,
            self._stores,
            result.task,
            text,
            key=f"{context.run_id}:{context.call_id}",
            now=rfc3339(self._clock.now()),
        )
        self._publish(await self._database.write(work))
        return ToolOutcome(f"{result.path} gets the message before its next step.")

    async def _cancel(self, context: CallContext, name: str) -> ToolOutcome:
        [result] = await self._find(context, [name])
        if result.has_ended:
            return ToolOutcome(f"{describe_status(result)}; nothing is stopped.")
        now = rfc3339(self._clock.now())
        work = partial(cancel_subtask, self._stores, result.task, ids=new_task_ids(), now=now)
        self._publish(await self._database.write(work))
        return ToolOutcome(f"{result.path} is stopped.", told_tasks=(result.task.id,))

    async def _find(self, context: CallContext, names: Sequence[str]) -> list[SubtaskResult]:
        """Return the subtasks with these ids or numbers; without any, the subtasks of the run.

        Raises:
            NotFound: there is no such subtask in this conversation.
        """
        return await self._database.read(partial(self._read_found, context, names))

    def _read_found(self, context: CallContext, names: Sequence[str]) -> Read[list[SubtaskResult]]:
        run, task = yield from self._read_run(context.run_id)
        root = task.id if run.subtask is None else run.subtask.root_task_id
        tree = yield from self._stores.subtasks.list_tree(root)
        if not names:
            own = [each.task_id for each in tree if each.parent_run_id == run.id]
            return (yield from load_results(self._stores, own))
        numbers = {str(each.subtask.number): each.task_id for each in tree if each.subtask}
        ids = [numbers.get(name, TaskId(name)) for name in names]
        results = yield from load_results(self._stores, ids)
        known = {
            each.task.id
            for each in results
            if each.task.is_subtask and each.task.session_id == context.session_id
        }
        for name, task_id in zip(names, ids, strict=True):
            if task_id not in known:
                raise NotFound(f"There is no task {name[:80]} in this conversation.")
        return results

    def _read_run(self, run_id: RunId) -> Read[tuple[Run, Task]]:
        run = yield from self._stores.runs.get(run_id)
        task = None if run is None else (yield from self._stores.tasks.get(run.task_id))
        if run is None or task is None:
            raise NotFound(f"There is no run {run_id}.")
        return run, task

    async def _load(self, ids: Iterable[TaskId]) -> list[SubtaskResult]:
        return await self._database.read(partial(load_results, self._stores, ids))

    def _publish(self, events: Sequence[EventRecord]) -> None:
        self._broadcaster.publish(events)


def _named_folder(context: CallContext, creator: Task, choice: str) -> str:
    """Return the creator's folder, "" if that is the one of the session."""
    is_of_session = choice == "shared" and not (creator.spec.workspace or creator.spec.own_folder)
    return "" if is_of_session else context.workspace


def _dispatched(results: Iterable[SubtaskResult]) -> Iterable[TaskDispatched]:
    for task, run, _ in results:
        place = run.subtask
        if place is not None:
            yield TaskDispatched(
                task_id=task.id,
                call_id=place.call_id,
                number=place.number,
                total=place.total,
                instruction=truncate_json(task.instruction, 4_000),
                profile=task.spec.profile.name,
                role=place.role,
                depends_on=task.depends_on,
            )
