"""The skills as people see them, and their decisions about them."""

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from internal.agent.app.access import add_rule
from internal.agent.domain.errors import Conflict
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import AuditAction, AuditEntry, Principal
from internal.agent.domain.tasks import Channel, rule_scope
from internal.agent.ports.runtime import Clock
from internal.agent.ports.skills import SkillReviewReport, SkillReviews, SkillSummary
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores


class SkillAdministration:
    """Lists and reviews skills. Every decision is added to the audit log."""

    def __init__(
        self, database: Database, stores: Stores, clock: Clock, reviews: SkillReviews
    ) -> None:
        self._database, self._stores, self._clock = database, stores, clock
        self._reviews = reviews

    async def list_all(self, principal: Principal) -> list[SkillSummary]:
        """Return all skills. Paths of the machine are for the owner only."""
        found = await asyncio.to_thread(self._reviews.list_all)
        if principal.may("owner"):
            return found
        return [msgspec.structs.replace(each, problem="", warnings=[]) for each in found]

    async def review(self, name: str, principal: Principal) -> SkillReviewReport:
        """Return the review of a skill for a person, before it is offered to the model.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such skill.
            Conflict: it cannot be read, or changes meanwhile.
        """
        principal.require_owner("review skills")
        return await asyncio.to_thread(self._reviews.review, name)

    async def decide(
        self,
        name: str,
        sha256: str,
        principal: Principal,
        via: Channel,
        *,
        accept: bool,
        rules: Sequence[str] = (),
    ) -> SkillSummary:
        """Accept the files of a skill with this hash, or withdraw their acceptance.

        The `rules`, chosen from the ones that the review offers, are granted for all tasks of the
        principal outside of chats. The decision takes effect at the next call of a run. Returns the
        skill.

        The audit entry is written before the decision is stored, and the rules after it: a failure
        between them leaves an entry without a decision, or a decision without rules, but never a
        decision without an entry or rules without a decision.

        Raises:
            Forbidden: the principal is not the owner.
            NotFound: there is no such skill.
            Conflict: its files have another hash, it is not usable, it needs no review, or a rule
                is not offered.
            FilesUnavailable: the decision cannot be stored.
        """
        principal.require_owner("review skills")
        if rules and not accept:
            raise Conflict(
                "Rules are granted only when the files of a skill are accepted.",
                reason_code="rules_without_acceptance",
            )
        found = await asyncio.to_thread(self._reviews.check, name, sha256, rules)
        now = rfc3339(self._clock.now())
        action: AuditAction = "skill.accepted" if accept else "skill.rejected"
        entry = AuditEntry(now, principal.id, via, action, found.name, sha256)
        await self._database.write(partial(self._stores.audit.add, entry))
        decided = await asyncio.to_thread(self._reviews.decide, name, sha256, accept=accept)
        scope = rule_scope("", principal.id)

        def grant() -> Write[None]:
            for rule in rules:
                yield from add_rule(
                    self._stores, PermissionRule(0, scope, rule, principal.id, via, "", now)
                )

        if rules:
            await self._database.write(grant)
        return decided
