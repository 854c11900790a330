"""Look up records by a complete or abbreviated id. Standard library only."""

from collections.abc import Sequence

from internal.channels.cli.client import GatewayClient, GatewayError
from internal.channels.cli.command_output import bare_id, one_line
from internal.channels.cli.exit_codes import USAGE
from internal.channels.cli.records import ArtifactItem, QuestionItem, TaskItem

ACTIVE = frozenset({"queued", "running", "waiting"})
"""The states of a task that has not ended."""
_KSUID_LENGTH = 27
_LIMIT = 500
_MAX_RUNS = 50


def find_id(written: str, known: Sequence[str]) -> str:
    """Return the id that equals `written`, or else the only one that starts or ends with it.

    The prefix of an id (`session-`) may be omitted.

    Raises:
        GatewayError: no id matches, or several do.
    """
    if written in known:
        return written
    starts = [
        name for name in known if name.startswith(written) or bare_id(name).startswith(written)
    ]
    found = starts or [name for name in known if written and name.endswith(written)]
    if len(found) == 1:
        return found[0]
    shown = one_line(written)
    if not found:
        raise GatewayError(USAGE, f"No id begins or ends with {shown}.")
    raise GatewayError(USAGE, f"{shown} is ambiguous: {len(found)} ids match.")


async def find_session(client: GatewayClient, written: str) -> str:
    """Return the id of a session, given its id or the id of one of its tasks or runs.

    Raises:
        GatewayError: no session matches, or several do.
    """
    if written.startswith(("task-", "run-")):
        return (await find_task(client, written)).session_id
    if _is_complete(written, "session-"):
        return written
    return find_id(written, [one.session_id for one in await client.sessions(_LIMIT)])


async def find_task(client: GatewayClient, written: str) -> TaskItem:
    """Return a task, given its id or the id of one of its runs or of its session.

    For a session that is its oldest active task, else its newest task.

    Raises:
        GatewayError: no task matches, or several do.
    """
    if written.startswith("session-"):
        found = await client.tasks(await find_session(client, written))
        active = [one for one in found if one.status in ACTIVE]
        if not found:
            raise GatewayError(USAGE, f"{one_line(written)} has no task yet.")
        return (active[::-1] or found)[0]
    if _is_complete(written, "task-"):
        return (await client.task(written)).item
    found = await client.tasks(limit=_LIMIT, subtasks=True)
    by_id = {one.task_id: one for one in found}
    if written.startswith("run-"):
        states = [await client.task(one.task_id) for one in found[:_MAX_RUNS]]
        by_id = {one.run_id: one.item for one in states}
    return by_id[find_id(written, list(by_id))]


async def find_artifact(client: GatewayClient, written: str) -> ArtifactItem:
    """Return the artifact with a complete or abbreviated id.

    Raises:
        GatewayError: no artifact matches, or several do.
    """
    if _is_complete(written, "artifact-"):
        return await client.artifact(written)
    found = {one.artifact_id: one for one in await client.artifacts({"versions": "all"}, _LIMIT)}
    return found[find_id(written, list(found))]


async def find_question(client: GatewayClient, written: str) -> QuestionItem:
    """Return the question with a complete or abbreviated id. Open questions take precedence.

    Raises:
        GatewayError: no question matches, or several do.
    """
    if _is_complete(written, "question-"):
        return await client.question(written)
    for status in ("open", None):
        known = [one.question_id for one in await client.questions(status, limit=_LIMIT)]
        if status is None or any(_matches(written, name) for name in known):
            return await client.question(find_id(written, known))
    raise AssertionError  # the loop returns or raises with status None


def _is_complete(written: str, prefix: str) -> bool:
    return written.startswith(prefix) and len(bare_id(written)) >= _KSUID_LENGTH


def _matches(written: str, name: str) -> bool:
    return bool(written) and (
        name.startswith(written) or bare_id(name).startswith(written) or name.endswith(written)
    )
