"""Tokens used and what they cost."""

from internal.agent.domain.ids import SessionId
from internal.agent.domain.tasks import Run
from internal.agent.domain.usage import PersonUsage, Usage, UsageKey, UsageSum
from internal.agent.store.database import Read, Row, Statement, Write

_SUM_QUERIES: dict[UsageKey, str] = {
    "day": "usage_by_day",
    "session": "usage_by_session",
    "model": "usage_by_model",
}


class UsageStore:
    """Usage, one row per run and model, for the principal whose task it was."""

    def sum_by(
        self, key: UsageKey, session_id: SessionId | None, owner: str | None, *, limit: int
    ) -> Read[list[UsageSum]]:
        """Return sums, newest key first, of one session or owner; None for all of them."""
        rows = yield Statement(_SUM_QUERIES[key], (session_id, owner, limit))
        return [UsageSum(name, Usage(*tokens), cost) for name, *tokens, cost in rows]

    def get_of_person(self, principal: str, since: str) -> Read[PersonUsage]:
        """Return what the tasks of a principal used since a time (RFC 3339).

        A run counts for the time of its latest reply.
        """
        rows = yield Statement("usage_of_person", (principal, since))
        return PersonUsage(*rows[0])

    def save(
        self, run: Run, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
    ) -> Write[None]:
        """Store what a run has used of a model so far. `cost` in US dollars, None when unknown."""
        yield Statement("save_usage", _row(run, principal, model, usage=usage, cost=cost, now=now))

    def add(
        self, run: Run, principal: str, model: str, *, usage: Usage, cost: float | None, now: str
    ) -> Write[None]:
        """Add what a request after the end of a run has used. `cost` as in `save`."""
        yield Statement("add_usage", _row(run, principal, model, usage=usage, cost=cost, now=now))


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
