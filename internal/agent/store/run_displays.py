"""Run displays: which process shows a run in a channel, and how far it has shown it."""

from internal.agent.domain.chats import RunDisplay
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Read, Statement, Write
from internal.agent.store.encoding import storable


class RunDisplayStore:
    """Run displays. A lease makes sure that one process at a time writes to a display."""

    def claim(
        self, run_id: RunId, channel: str, owner: str, *, lease_until: str, now: str
    ) -> Write[RunDisplay | None]:
        """Take the display of a run. None when it is closed or leased by another owner."""
        rows = yield Statement("claim_run_display", (run_id, channel, owner, lease_until, now))
        return RunDisplay(run_id, *rows[0]) if rows else None

    def save(
        self, display: RunDisplay, channel: str, owner: str, *, lease_until: str
    ) -> Write[bool]:
        """Store what was shown and extend the lease. False when another owner has it."""
        rows = yield Statement(
            "save_run_display",
            (
                display.run_id,
                channel,
                owner,
                display.last_position,
                storable(display.state),
                lease_until,
            ),
        )
        return bool(rows)

    def close(self, display: RunDisplay, channel: str, owner: str, /) -> Write[bool]:
        """Mark a display as finished. False when another owner has it."""
        values = (display.run_id, channel, owner, storable(display.state))
        rows = yield Statement("close_run_display", values)
        return bool(rows)

    def list_abandoned(self, channel: str, now: str, /) -> Read[list[RunDisplay]]:
        """Return the unfinished displays whose lease has expired."""
        rows = yield Statement("abandoned_run_displays", (channel, now))
        return [RunDisplay(RunId(run_id), position, state) for run_id, position, state in rows]
