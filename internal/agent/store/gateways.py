"""The gateway of a database: one row, which the gateway renews while it runs."""

from typing import NamedTuple

from internal.agent.store.database import Read, Statement, Write


class GatewayRow(NamedTuple):
    """The process that serves the database, and the end of its lease (RFC 3339)."""

    owner: str
    lease_until: str


class GatewayStore:
    """At most one gateway."""

    def get(self) -> Read[GatewayRow | None]:
        """Return the gateway."""
        rows = yield Statement("gateway")
        return GatewayRow._make(rows[0]) if rows else None

    def claim(self, owner: str, lease_until: str, replaced: str = "", /) -> Write[bool]:
        """Store a gateway in place of the owner `replaced`. False if there is another one."""
        rows = yield Statement("claim_gateway", (owner, lease_until, replaced))
        return bool(rows)

    def renew(self, owner: str, lease_until: str, /) -> Write[bool]:
        """Extend the lease of a gateway. False if the owner is not the gateway."""
        rows = yield Statement("renew_gateway", (owner, lease_until))
        return bool(rows)

    def remove(self, owner: str, /) -> Write[None]:
        """Remove a gateway. No effect if there is another one."""
        yield Statement("delete_gateway", (owner,))
