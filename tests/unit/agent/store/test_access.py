"""Permission rules, roles, pairing codes and the audit log."""

from functools import partial

from msgspec.structs import replace

from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import AuditEntry, RoleAssignment
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, T2


def a_rule(place: str, rule: str) -> PermissionRule:
    return PermissionRule(0, place, rule, "local", "web", "question-1", T0)


async def test_rules_are_listed_by_scope(database: Database, stores: Stores) -> None:
    for place, rule in (
        ("session-1", "shell(git log *)"),
        ("principal:local", "shell(make *)"),
        ("session-2", "shell(ls)"),
        ("session-1", "shell(git log *)"),
    ):
        await database.write(partial(stores.permission_rules.add, a_rule(place, rule)))

    held = await database.read(
        lambda: stores.permission_rules.list_for("session-1", "principal:local")
    )
    assert held == ["shell(git log *)", "shell(make *)"]
    assert (
        await database.read(lambda: stores.permission_rules.list_for("session-3", "lark:a:b")) == []
    )
    kept = await database.read(lambda: stores.permission_rules.list_page(10))
    assert [each.rule for each in kept] == ["shell(ls)", "shell(make *)", "shell(git log *)"]


async def test_a_rule_is_removed_once(database: Database, stores: Stores) -> None:
    await database.write(partial(stores.permission_rules.add, a_rule("session-1", "shell(ls)")))
    (kept,) = await database.read(lambda: stores.permission_rules.list_page(10))

    assert await database.write(lambda: stores.permission_rules.remove(kept.number)) == kept
    assert await database.write(lambda: stores.permission_rules.remove(kept.number)) is None
    assert await database.read(lambda: stores.permission_rules.list_for("session-1", "")) == []


async def test_a_pairing_code_is_redeemed_once_before_it_expires(
    database: Database, stores: Stores
) -> None:
    await database.write(
        lambda: stores.roles.add_pairing_code("hash", "operate", now=T0, expires=T1)
    )
    assert await database.write(lambda: stores.roles.redeem_pairing_code("other", T0)) is None
    assert await database.write(lambda: stores.roles.redeem_pairing_code("hash", T0)) == "operate"
    assert await database.write(lambda: stores.roles.redeem_pairing_code("hash", T0)) is None

    await database.write(lambda: stores.roles.add_pairing_code("late", "talk", now=T0, expires=T1))
    assert await database.write(lambda: stores.roles.redeem_pairing_code("late", T1)) is None


async def test_roles_are_stored_until_removed(database: Database, stores: Stores) -> None:
    ana = RoleAssignment("lark:a:ou_1", "Ana", "talk", "lark", T0)
    await database.write(lambda: stores.roles.assign(ana))
    await database.write(lambda: stores.roles.assign(replace(ana, role="operate", created=T1)))
    bo = RoleAssignment("lark:a:ou_2", HOSTILE, "owner", "lark", T2)
    await database.write(lambda: stores.roles.assign(bo))

    assert await database.read(lambda: stores.roles.get("lark:a:ou_1")) == replace(
        ana, role="operate", created=T1
    )
    everybody = await database.read(stores.roles.list_all)
    assert [each.name for each in everybody] == ["Ana", CLEANED]
    assert await database.write(lambda: stores.roles.remove("lark:a:ou_1"))
    assert not await database.write(lambda: stores.roles.remove("lark:a:ou_1"))
    assert await database.read(lambda: stores.roles.get("lark:a:ou_1")) is None


async def test_audit_entries_are_counted_since_a_timestamp(
    database: Database, stores: Stores
) -> None:
    for at, who in ((T0, "ana"), (T1, "ana"), (T2, "bo")):
        entry = AuditEntry(at, who, "lark", "pairing.refused", "code", HOSTILE)
        await database.write(partial(stores.audit.add, entry))
    await database.write(
        lambda: stores.audit.add(AuditEntry(T2, "ana", "lark", "pairing.redeemed", "x", ""))
    )

    assert await database.read(lambda: stores.audit.count("ana", "pairing.refused", T0)) == 2
    assert await database.read(lambda: stores.audit.count("ana", "pairing.refused", T1)) == 1
    assert await database.read(lambda: stores.audit.count(None, "pairing.refused", T1)) == 2
    newest = await database.read(lambda: stores.audit.list_page(2))
    assert [each.action for each in newest] == ["pairing.redeemed", "pairing.refused"]
    assert newest[1].detail == CLEANED
