"""The skills as people see them, and their decisions about them."""

import asyncio
from functools import partial

import msgspec

from internal.agent.domain.errors import Forbidden
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.tasks import Channel
from internal.agent.ports.runtime import Clock
from internal.agent.ports.skills import SkillReviewReport, SkillReviews, SkillSummary
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores


class SkillAdministration:
    """Lists and reviews skills. Every decision is added to the audit log."""

    def __init__(
        self, database: Database, stores: Stores, clock: Clock, reviews: SkillReviews
    ) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._reviews = reviews

    async def list_all(self, principal: Principal) -> list[SkillSummary]:
        """Return all skills. What names paths of the machine is for the owner only."""
        found = await asyncio.to_thread(self._reviews.list_all)
        if principal.may("owner"):
            return found
        return [msgspec.structs.replace(each, problem="", warnings=[]) for each in found]

    async def review(self, name: str, principal: Principal) -> SkillReviewReport:
        """Return what a person should know of a skill before it is offered to the model.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such skill.
            Conflict: it cannot be read, or changes meanwhile.
        """
        _require_owner(principal)
        return await asyncio.to_thread(self._reviews.review, name)

    async def decide(
        self, name: str, sha256: str, principal: Principal, via: Channel, *, accept: bool
    ) -> SkillSummary:
        """Accept the files of a skill with this hash, or withdraw what was accepted.

        It counts from the next call of a run on. Returns the skill.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such skill.
            Conflict: its files have another hash, it is not usable, or it needs no review.
            FilesUnavailable: the decision cannot be stored.
        """
        _require_owner(principal)
        decided = await asyncio.to_thread(self._reviews.decide, name, sha256, accept=accept)
        entry = AuditEntry(
            rfc3339(self._clock.now()),
            principal.id,
            via,
            "skill.accepted" if accept else "skill.rejected",
            decided.name,
            sha256,
        )
        await self._database.write(partial(self._stores.audit.add, entry))
        return decided


def _require_owner(principal: Principal) -> None:
    if not principal.may("owner"):
        raise Forbidden("Only the owner may review skills.")
