"""Showings in a table."""

from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import plain


class RunDisplayStore:
    """Fills `Showings`."""

    def claim(
        self, run_id: RunId, door: str, owner: str, lease_until: str, now: str, /
    ) -> Write[RunDisplay | None]:
        """Take the showing of a run; None when it is closed or somebody else's lease holds."""
        rows = yield Statement("claim_showing", (run_id, door, owner, lease_until, now))
        return RunDisplay(run_id, *rows[0]) if rows else None

    def save(self, showing: RunDisplay, door: str, owner: str, lease_until: str, /) -> Write[bool]:
        """Store what was shown; False when it is not ours any more."""
        rows = yield Statement(
            "keep_showing",
            (
                showing.run_id,
                door,
                owner,
                showing.last_position,
                plain(showing.state),
                lease_until,
            ),
        )
        return bool(rows)

    def close(self, showing: RunDisplay, door: str, owner: str, /) -> Write[bool]:
        """Store that nothing more is to be shown; False when it is not ours any more."""
        rows = yield Statement("close_showing", (showing.run_id, door, owner, plain(showing.state)))
        return bool(rows)

    def list_abandoned(self, door: str, now: str, /) -> Read[list[RunDisplay]]:
        """Return the open showings whose lease is over."""
        rows = yield Statement("open_showings", (door, now))
        return [RunDisplay(RunId(run_id), position, state) for run_id, position, state in rows]
