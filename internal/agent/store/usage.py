"""What models were used and what they cost, in a table."""

from typing import NamedTuple

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.usage import Usage, UsageKey
from internal.agent.store.database import Read, Statement, Write


class UsageSum(NamedTuple):
    """What was used under a key. `cost` in US dollars, of what has a known price; None: nothing."""

    key: str
    usage: Usage
    cost: float | None


class UsageStore:
    """Fills `Costs`."""

    def sum_by(
        self, by: UsageKey, session_id: SessionId | None, owner: str | None, limit: int, /
    ) -> Read[list[UsageSum]]:
        """Return what was used, the newest key first; None: of all sessions, of everybody."""
        which = (session_id, owner, limit)
        sums: dict[UsageKey, Statement] = {
            "day": Statement("costs_by_day", which),
            "session": Statement("costs_by_session", which),
            "model": Statement("costs_by_model", which),
        }
        rows = yield sums[by]
        return [UsageSum(key, Usage(*tokens), cost) for key, *tokens, cost in rows]

    def add(
        self,
        session_id: SessionId,
        run_id: RunId,
        model: str,
        usage: Usage,
        cost: float | None,
        now: str,
    ) -> Write[None]:
        """Add what a run used of one model; `cost` in US dollars when known."""
        yield Statement(
            "insert_cost",
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
