"""Granting: the rules that people wrote by their answers, as a run's policy takes them."""

import logging
from functools import partial

from internal.agent.domain.errors import NotFound
from internal.agent.domain.permissions.rules import RuleError, split_rule
from internal.agent.domain.principals import Principal
from internal.agent.domain.tasks import Channel, Task
from internal.agent.store.access import AuditEntry, PermissionRule
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)


async def load_rules(database: Database, stores: Stores, task: Task) -> list[str]:
    """Return what people allowed in the task's session, and for tasks from where it came.

    A stored rule that cannot be read any more allows nothing.
    """
    rules = await database.read(
        partial(stores.permission_rules.list_for, task.session_id, task.origin.grants)
    )
    return [rule for rule in rules if _readable(rule)]


def _readable(rule: str) -> bool:
    try:
        split_rule(rule)
    except RuleError as error:
        logger.warning("a written rule is not read any more", extra={"reason": str(error)})
        return False
    return True


def remove_rule(
    stores: Stores, number: int, principal: Principal, via: Channel, now: str
) -> Write[PermissionRule]:
    """Take a rule back and note who did.

    Raises:
        NotFound: there is no such rule, or the principal is not the owner.
    """
    rule = (yield from stores.permission_rules.remove(number)) if principal.may("owner") else None
    if rule is None:
        raise NotFound(f"There is no rule {number}.")
    deed = AuditEntry(now, principal.id, via, "rule.removed", rule.scope, rule.rule)
    yield from stores.audit.add(deed)
    return rule
