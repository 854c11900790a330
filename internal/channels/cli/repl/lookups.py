"""Commands about sessions and tasks that need no session: lists, watching, a word, a stop."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from internal.channels.cli.client import By, GatewayClient, TaskItem
from internal.channels.cli.exit_codes import FAILED, OK, USAGE, CliExit
from internal.channels.cli.output import Output
from internal.channels.cli.render.event_rows import align_columns, format_cost, format_tokens
from internal.channels.cli.render.text import plain_text, truncate_line, wrap_line
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.render.transcript import transcript_markdown
from internal.channels.cli.repl.id_lookup import find_id, is_complete
from internal.channels.cli.repl.view import SessionView
from internal.i18n.catalog import MessageCatalog

_MANY = 500
_RUNS_LOOKED_AT = 50
_TITLE = 60
_LAST = frozenset({"workflow.result.final", "workflow.result.cancelled"})
"""Nothing of a run follows either."""
_OPEN = {"queued", "running", "waiting"}


class Lookups(NamedTuple):
    """Does one of these commands. An ID is that of a task, run or session, or begins one.

    Every method returns the exit code; Leave and HostError say what cannot be done.
    """

    client: GatewayClient
    output: Output
    words: MessageCatalog
    width: int
    as_json: bool = False

    async def sessions(self) -> int:
        """List the sessions, last active first."""
        found = await self.client.sessions(_MANY if self.as_json else _RUNS_LOOKED_AT)
        return self._listed([one._asdict() for one in found], [one.shown for one in found])

    async def show(self, written: str) -> int:
        """Print what was said in a session, as Markdown or as JSON."""
        session_id = await self.session_of(written)
        said = await self.client.transcript(session_id)
        if self.as_json:
            return self._json([one._asdict() for one in said])
        self.output.write(transcript_markdown(said, session_id).encode())
        return OK

    async def remove(self, written: Sequence[str]) -> int:
        """Delete sessions."""
        for session_id in [await self.session_of(one) for one in written]:
            await self.client.remove(session_id)
            self._say(session_id)
        return OK

    async def rename(self, written: str, title: str) -> int:
        """Give a session another title."""
        await self.client.rename(await self.session_of(written), title)
        return OK

    async def tasks(self, written: str | None) -> int:
        """List the tasks, newest first, of one session or of all."""
        session_id = None if written is None else await self.session_of(written)
        found = await self.client.tasks(session_id, _RUNS_LOOKED_AT)
        return self._listed([one._asdict() for one in found], [one.shown for one in found])

    async def cost(self, by: By) -> int:
        """Say what was used, by day, session or model."""
        found = await self.client.costs(by)
        rows = [
            (
                one.key,
                f"{format_tokens(one.input_tokens)} in",
                f"{format_tokens(one.output_tokens)} out",
                self.words("cost_unknown") if one.cost is None else format_cost(one.cost),
            )
            for one in found
        ]
        return self._listed([one._asdict() for one in found], rows)

    async def say(self, written: str, text: str) -> int:
        """Give words to a task at work."""
        task = await self.task_of(written)
        if task.status not in _OPEN:
            again = f'larkspur -r {task.session_id} -p "…"'
            raise CliExit(USAGE, f"Nothing is at work there ({task.status}); a new task: {again}")
        if task.status == "waiting":
            open_ones = await self.client.questions(session_id=task.session_id)
            asked = [one.question_id for one in open_ones if one.task_id == task.task_id]
            how = " · ".join(f"larkspur answer {one} …" for one in asked)
            raise CliExit(USAGE, f"It waits for an answer: {how}")
        taken = await self.client.steer(task.task_id, text)
        self._say(self.words("noted") if taken else self.words("becomes_next"))
        return OK

    async def stop(self, written: str) -> int:
        """Stop a task."""
        task = await self.task_of(written)
        if task.status not in _OPEN:
            raise CliExit(USAGE, f"{task.task_id} has ended: {task.status}.")
        await self.client.stop(task.task_id)
        self._say(task.task_id)
        return OK

    async def watch(self, written: str) -> int:
        """Show a task from its beginning to its end; the exit code says how it ended."""
        task = await self.task_of(written)
        view, over = SessionView(self.words, UNICODE), False
        async with aclosing(self.client.watch(task.session_id, "")) as batches:
            async for batch in batches:
                for envelope in batch.envelopes:
                    event = json.loads(envelope)
                    if event.get("task_id") != task.task_id:
                        continue
                    over |= event["event"] in _LAST and not event["is_subtask"]
                    if self.as_json:
                        self.output.write(b'{"event":%s}\n' % envelope)
                    else:
                        view.add_event(envelope)
                await self._print(view)
                if over:
                    break
        ended = await self.client.task(task.task_id)
        return OK if ended.row.status == "completed" else FAILED

    async def session_of(self, written: str) -> str:
        """Return the session that is meant.

        Raises:
            HostError: none is, or several are.
        """
        if written.startswith(("task-", "run-")):
            return (await self.task_of(written)).session_id
        if is_complete(written):
            return written
        return find_id(written, [one.session_id for one in await self.client.sessions(_MANY)])

    async def task_of(self, written: str) -> TaskItem:
        """Return the task that is meant; of a session the one at work, else the newest.

        Raises:
            HostError: none is, or several are.
        """
        if written.startswith("session-"):
            found = await self.client.tasks(await self.session_of(written))
            at_work = [one for one in found if one.status in _OPEN]
            if not found:
                raise CliExit(USAGE, f"There is no task in {truncate_line(written, _TITLE)} yet.")
            return (at_work[::-1] or found)[0]
        if written.startswith("task-") and is_complete(written):
            return (await self.client.task(written)).row
        found = await self.client.tasks(limit=_MANY)
        by_id = {one.task_id: one for one in found}
        if written.startswith("run-"):
            ends = [await self.client.task(one.task_id) for one in found[:_RUNS_LOOKED_AT]]
            by_id = {one.run_id: one.row for one in ends}
        return by_id[find_id(written, list(by_id))]

    async def _print(self, view: SessionView) -> None:
        final, _ = view.take_rows(self.width)
        text = "".join(f"{plain_text(row).rstrip()}\n" for row in final)
        # in a thread: a slow reader must not keep anything else from going on
        await asyncio.to_thread(self.output.write, text.encode())

    def _listed(self, found: list[dict[str, Any]], rows: Sequence[Sequence[str]]) -> int:
        if self.as_json:
            return self._json(found)
        cut = [[truncate_line(cell, _TITLE) for cell in row] for row in rows]
        for line in align_columns(cut) if cut else ():
            self._say(plain_text(next(wrap_line(line, 1_000_000))).rstrip())
        return OK

    def _json(self, found: list[dict[str, Any]]) -> int:
        self._say(json.dumps(found, indent=2, ensure_ascii=False))
        return OK

    def _say(self, text: str) -> None:
        self.output.write(f"{text}\n".encode("utf-8", "replace"))
