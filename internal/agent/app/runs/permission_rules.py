"""Permission rules that answers added: store, load and remove them."""

import logging
from functools import partial

from internal.agent.domain.errors import NotFound
from internal.agent.domain.permissions.rules import PermissionRule, RuleError, split_rule
from internal.agent.domain.principals import AuditEntry, Principal
from internal.agent.domain.questions import Answer, QuestionRecord
from internal.agent.domain.tasks import Channel, Task
from internal.agent.store.database import Database, Write
from internal.agent.store.stores import Stores

logger = logging.getLogger(__name__)


def add_rules(stores: Stores, question: QuestionRecord, answer: Answer) -> Write[None]:
    """Store the rules of an answer, for its session or for all tasks from the same place."""
    if answer.grant == "once":
        return
    scope = question.session_id if answer.grant == "session" else question.rule_scope
    for rule in answer.rules:
        yield from stores.permission_rules.add(
            PermissionRule(0, scope, rule, answer.by, answer.via, answer.question_id, answer.at)
        )
        entry = AuditEntry(answer.at, answer.by, answer.via, "rule.written", scope, rule)
        yield from stores.audit.add(entry)


async def load_rules(database: Database, stores: Stores, task: Task) -> list[str]:
    """Return the allow rules for the task's session and for the place it was submitted from.

    Stored rules that cannot be parsed are skipped and logged.
    """
    rules = await database.read(
        partial(stores.permission_rules.list_for, task.session_id, task.origin.rule_scope)
    )
    return [rule for rule in rules if _is_valid(rule)]


def remove_rule(
    stores: Stores, number: int, principal: Principal, *, via: Channel, now: str
) -> Write[PermissionRule]:
    """Remove a rule and add an audit entry.

    Raises:
        NotFound: the rule does not exist or the principal is not the owner.
    """
    rule = (yield from stores.permission_rules.remove(number)) if principal.may("owner") else None
    if rule is None:
        raise NotFound(f"There is no rule {number}.")
    entry = AuditEntry(now, principal.id, via, "rule.removed", rule.scope, rule.rule)
    yield from stores.audit.add(entry)
    return rule


def _is_valid(rule: str) -> bool:
    try:
        split_rule(rule)
    except RuleError as error:
        logger.warning("stored rule skipped", extra={"reason": str(error)})
        return False
    return True
