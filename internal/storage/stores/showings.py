"""Showings in a table."""

from typing import NamedTuple

from internal.agent.domain.ids import RunId
from internal.agent.ports.database import Read, Statement, Write
from internal.storage.stores.text import plain


class Showing(NamedTuple):
    """What a door has shown of a run: up to which position, and its own state as JSON."""

    run_id: RunId
    last_position: int
    state: str


class ShowingStore:
    """Fills `Showings`."""

    def claim(
        self, run_id: RunId, door: str, owner: str, lease_until: str, now: str, /
    ) -> Write[Showing | None]:
        """Take the showing of a run; None when it is closed or somebody else's lease holds."""
        rows = yield Statement("claim_showing", (run_id, door, owner, lease_until, now))
        return Showing(run_id, *rows[0]) if rows else None

    def keep(self, showing: Showing, door: str, owner: str, lease_until: str, /) -> Write[bool]:
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

    def close(self, showing: Showing, door: str, owner: str, /) -> Write[bool]:
        """Store that nothing more is to be shown; False when it is not ours any more."""
        rows = yield Statement("close_showing", (showing.run_id, door, owner, plain(showing.state)))
        return bool(rows)

    def abandoned(self, door: str, now: str, /) -> Read[list[Showing]]:
        """Return the open showings whose lease is over."""
        rows = yield Statement("open_showings", (door, now))
        return [Showing(RunId(run_id), position, state) for run_id, position, state in rows]
