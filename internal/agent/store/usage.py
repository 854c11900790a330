"""Tokens used and what they cost."""

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.usage import Usage, UsageKey, UsageSum
from internal.agent.store.database import Read, Statement, Write

_SUM_QUERIES: dict[UsageKey, str] = {
    "day": "usage_by_day",
    "session": "usage_by_session",
    "model": "usage_by_model",
}


class UsageStore:
    """Usage, one row per run and model."""

    def sum_by(
        self, key: UsageKey, session_id: SessionId | None, owner: str | None, *, limit: int
    ) -> Read[list[UsageSum]]:
        """Return sums, newest key first, of one session or owner; None for all of them."""
        rows = yield Statement(_SUM_QUERIES[key], (session_id, owner, limit))
        return [UsageSum(name, Usage(*tokens), cost) for name, *tokens, cost in rows]

    def add(
        self,
        session_id: SessionId,
        run_id: RunId,
        model: str,
        *,
        usage: Usage,
        cost: float | None,
        now: str,
    ) -> Write[None]:
        """Insert what a run used of a model. `cost` in US dollars, None when unknown."""
        yield Statement(
            "insert_usage",
            (
                session_id,
                run_id,
                model,
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                cost,
                now,
            ),
        )
