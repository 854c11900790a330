"""Access: who was given rights besides those of the settings, and the codes that give them."""

import hashlib
import secrets
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import Principal, Right
from internal.agent.domain.tasks import Channel
from internal.agent.ports.runtime import Clock
from internal.agent.store.access import AuditEntry, RoleAssignment
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

CODE_LENGTH = 8
CODE_LIFETIME = timedelta(minutes=10)
MAX_WRONG_CODES, MAX_WRONG_CODES_OVERALL = 5, 20
"""So many wrong codes a person, and everybody together, may try in the life of a code."""

_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # nothing that looks like another
_HELD: dict[Right, frozenset[Right]] = {
    "talk": frozenset({"talk"}),
    "operate": frozenset({"talk", "operate"}),
    "owner": frozenset({"talk", "operate", "owner"}),
}
"""What a role includes, the smallest role first."""


class WrongCode(Forbidden):
    """The code was never given out, was used, or has expired."""


class TooManyAttempts(Forbidden):
    """Too many wrong codes were tried; nothing was looked at."""


class PairingCode(NamedTuple):
    """A code that gives a right once, until `expires` (RFC 3339)."""

    code: str
    expires: str


class Access:
    """Gives rights to people and takes them away; every deed is noted."""

    def __init__(self, database: Database, stores: Stores, clock: Clock) -> None:
        self._database, self._stores, self._clock = database, stores, clock

    async def create_code(self, role: Right, principal: Principal, via: Channel) -> PairingCode:
        """Make a code that gives the right to whoever sends it first; only its hash is kept.

        Raises:
            Forbidden: the principal is not the owner.
        """
        _only_owner(principal)
        code = "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
        now = self._clock.now()
        offered = PairingCode(code, rfc3339(now + CODE_LIFETIME))
        deed = AuditEntry(rfc3339(now), principal.id, via, "pairing.offered", role)

        def work() -> Write[None]:
            yield from self._stores.roles.add_pairing_code(
                _hash(code), role, now=deed.at, expires=offered.expires
            )
            yield from self._stores.audit.add(deed)

        await self._database.write(work)
        return offered

    async def redeem_code(self, code: str, principal_id: str, name: str, via: Channel) -> Right:
        """Use a code up and return what the person holds now: never less than before.

        Raises:
            WrongCode: it was never given out, was used, or has expired. The try is counted.
            TooManyTries: this person, or all together, tried too many wrong ones.
        """
        now = self._clock.now()
        at, since = rfc3339(now), rfc3339(now - CODE_LIFETIME)
        stores = self._stores

        def work() -> Write[Right | None]:
            for who, most in ((principal_id, MAX_WRONG_CODES), (None, MAX_WRONG_CODES_OVERALL)):
                if (yield from stores.audit.count(who, "pairing.refused", since)) >= most:
                    raise TooManyAttempts("Too many wrong codes were tried: wait ten minutes.")
            given = yield from stores.roles.redeem_pairing_code(_hash(code), at)
            if given is None:
                # stored, not raised: what raises is rolled back, and the try would not count
                deed = AuditEntry(at, principal_id, via, "pairing.refused", principal_id)
                yield from stores.audit.add(deed)
                return None
            known = yield from stores.roles.get(principal_id)
            role = max(given, known.role if known else given, key=lambda each: len(_HELD[each]))
            yield from stores.roles.assign(RoleAssignment(principal_id, name, role, via, at))
            yield from stores.audit.add(
                AuditEntry(at, principal_id, via, "pairing.taken", principal_id, given)
            )
            return role

        role = await self._database.write(work)
        if role is None:
            raise WrongCode("This code is wrong, was used before, or has expired.")
        return role

    async def revoke_code(self, code: str, principal_id: str, via: Channel) -> None:
        """Use a code up for nothing: it was shown where others read it."""
        at = rfc3339(self._clock.now())
        deed = AuditEntry(at, principal_id, via, "pairing.refused", principal_id, "shown to others")

        def work() -> Write[None]:
            if (yield from self._stores.roles.redeem_pairing_code(_hash(code), at)) is not None:
                yield from self._stores.audit.add(deed)

        await self._database.write(work)

    async def get_rights(self, principal_id: str) -> frozenset[Right]:
        """Return what the person was given; a smaller right is part of a greater one."""
        known = await self._database.read(partial(self._stores.roles.get, principal_id))
        return frozenset() if known is None else _HELD[known.role]

    async def remove_role(self, principal_id: str, principal: Principal, via: Channel) -> None:
        """Take away what a person was given; it counts from their next word or click.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: nobody of that name was given anything.
        """
        _only_owner(principal)
        deed = AuditEntry(
            rfc3339(self._clock.now()), principal.id, via, "person.removed", principal_id
        )

        def work() -> Write[None]:
            if not (yield from self._stores.roles.remove(principal_id)):
                raise NotFound(f"There is no person {principal_id[:80]} who was given a right.")
            yield from self._stores.audit.add(deed)

        await self._database.write(work)


def _only_owner(principal: Principal) -> None:
    if not principal.may("owner"):
        raise Forbidden("Only the owner may give rights and take them away.")


def _hash(code: str) -> str:
    """Return what is kept of a code; case, blanks and dashes do not count in one."""
    return hashlib.sha256("".join(code.upper().replace("-", "").split()).encode()).hexdigest()
