"""Used tokens and their cost."""

from collections.abc import Iterable
from operator import add
from typing import NamedTuple

import msgspec

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import PersonUsage, Spending, Usage, UsageKey, UsageSum
from internal.agent.store.database import Batch, Lookup, Read, Row, Statement, Write
from internal.agent.store.runs import read_usage

_EVERYBODY = ""
"""The owner of the sums over all sessions."""
_NO_SESSION = ""
"""The session of requests that belong to none."""


class _Record(NamedTuple):
    """A row of `usage`: the use of a model by a run. `owner` is the owner of the session."""

    session_id: SessionId
    owner: str | None
    principal: str
    model: str
    number: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: float | None
    recorded: str

    def sums(self) -> list[tuple[str, str, str]]:
        """Return the keys of the sums that contain the row."""
        day = self.recorded[:10]
        keys = [("person", self.principal, day)]
        for owner in {_EVERYBODY, self.owner or _EVERYBODY}:
            keys += ("day", owner, day), ("model", owner, self.model)
        return [*keys, ("session", self.owner, self.session_id)] if self.owner else keys

    def values(self) -> tuple[float, ...]:
        """Return the amounts that the row adds to each sum."""
        tokens = self[5:9]
        if self.cost is None:
            return 1, 0, *tokens, sum(tokens), 0.0
        return 1, 1, *tokens, 0, self.cost


class UsageStore:
    """Usage, one row per run and model, for the principal whose task it was.

    The rows of ended runs are also added up by day, model, session and person, so that the time to
    read sums does not depend on how many rows there are.
    """

    def sum_by(
        self, key: UsageKey, session_id: SessionId | None, owner: str | None, *, limit: int
    ) -> Read[list[UsageSum]]:
        """Return sums, newest key first, of one session or owner; None includes all.

        Models are in the order of their last use, in deleted sessions too.
        """
        if session_id is not None and key == "session":
            rows = yield Statement("usage_of_session", (session_id,))
        elif session_id is not None:
            values = (session_id, key, limit)
            rows = yield Statement("usage_of_session_by_day_or_model", values)
        elif key == "session":
            rows = yield Statement("usage_by_session", (owner or _EVERYBODY, limit))
        else:
            rows = yield Statement("usage_by_day_or_model", (key, owner or _EVERYBODY, limit))
        return [UsageSum(name, Usage(*tokens), cost) for name, *tokens, cost in rows]

    def get_of_person(self, principal: str, day: str) -> Read[PersonUsage]:
        """Return the usage of a principal's tasks since the beginning of a day, `YYYY-MM-DD`.

        A run counts for the day of its latest reply.
        """
        rows = yield Statement("usage_of_person", (principal, day))
        return PersonUsage(*rows[0])

    def list_of_trees(self, run_ids: Iterable[RunId], /) -> Read[dict[RunId, Spending]]:
        """Return the usage of runs with all subtasks below them; unknown runs are left out.

        Every display of a run's usage comes from here. A request for the title of the session does
        not belong to a run.
        """
        found: dict[RunId, Spending] = {}
        rows = yield Lookup("spending_of_tree", [(run_id,) for run_id in run_ids])
        for root, run_id, has_ended, usage, cost, *tokens, known in rows:
            spent = Spending(read_usage(usage), cost, int(run_id != root))
            if not has_ended:
                so_far = Usage(*(count or 0 for count in tokens))
                spent = msgspec.structs.replace(spent, usage=so_far, cost=known)
            found[root] = found.get(root, Spending()) + spent
        return found

    def get_of_tree(self, run_id: RunId, /) -> Read[Spending]:
        """Return the usage of a run with all subtasks below it; see `list_of_trees`."""
        return (yield from self.list_of_trees([run_id])).get(run_id, Spending())

    def save(
        self, run: Run, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
    ) -> Write[None]:
        """Store the usage of a model by a run so far. `cost` in US dollars, None when unknown."""
        yield Statement("save_usage", _row(run, principal, model, usage=usage, cost=cost, now=now))

    def add(
        self, run: Run, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
    ) -> Write[None]:
        """Add the usage of a request after the end of a run. `cost` as in `save`."""
        yield from self._mark_summed(run.id, is_summed=False)
        yield Statement("add_usage", _row(run, principal, model, usage=usage, cost=cost, now=now))
        yield from self._mark_summed(run.id, is_summed=True)

    def add_of_person(
        self, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
    ) -> Write[None]:
        """Add the usage of a request without a run. `cost` as in `save`.

        There is one row for a person, a model and a day, instead of a row for each run.
        """
        row_id = RunId(f"plain-{now[:10]}-{principal}")
        yield from self._mark_summed(row_id, is_summed=False)
        tokens = msgspec.structs.astuple(usage)
        yield Statement("add_usage", (_NO_SESSION, row_id, model, *tokens, cost, now, principal))
        yield from self._mark_summed(row_id, is_summed=True)

    def add_to_sums(self, run_id: RunId) -> Write[None]:
        """Add the usage of a run that ends to the sums."""
        yield from self._mark_summed(run_id, is_summed=True)

    def remove_of_session(self, session_id: SessionId, owner: str) -> Write[None]:
        """Remove the usage of a session without unfinished runs, whose row is removed already."""
        rows = yield Statement("delete_usage_of_session", (session_id, owner))
        yield from _change_sums(rows, -1)

    def remove_old(self, after: int, last: int, before: str) -> Write[None]:
        """Remove rows of ended runs after a number up to `last`, older than `before` (RFC 3339)."""
        rows = yield Statement("summed_usage", (after, last, before))
        yield Statement("prune_usage", (after, last, before))
        yield from _change_sums(rows, -1)

    def _mark_summed(self, run_id: RunId, *, is_summed: bool) -> Write[None]:
        rows = yield Statement("usage_of_run", (run_id, int(not is_summed)))
        if rows:
            yield Statement("mark_usage_summed", (run_id, int(is_summed)))
            yield from _change_sums(rows, 1 if is_summed else -1)


def _change_sums(rows: Iterable[Row], sign: int) -> Write[None]:
    """Add rows of `usage` to all sums that contain them, or with the sign -1 subtract them."""
    newest: dict[tuple[str, str, str], int] = {}
    changes: dict[tuple[str, str, str], tuple[float, ...]] = {}
    for record in map(_Record._make, rows):
        values = record.values()
        for key in record.sums():
            changes[key] = tuple(map(add, changes[key], values)) if key in changes else values
            newest[key] = max(record.number, newest.get(key, 0))
    if not changes:
        return
    yield Batch(
        "add_to_usage_sum",
        [
            (*key, newest[key], *(sign * value for value in change))
            for key, change in changes.items()
        ],
    )
    if sign < 0:
        yield Batch("delete_empty_usage_sum", list(changes))


def _row(
    run: Run, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
) -> Row:
    return (
        run.session_id,
        run.id,
        model,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        cost,
        now,
        principal,
    )
