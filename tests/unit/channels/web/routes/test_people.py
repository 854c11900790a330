"""Routes for permission rules, people, pairings and the audit log."""

from tests.support.web_calls import Call


async def test_a_pairing_is_recorded_in_the_audit_log(call: Call) -> None:
    pairing = await call("POST", "/api/pairings", {"role": "talk"})
    assert pairing.status == 201
    audit = (await call("GET", "/api/audit")).json()["entries"]
    assert len(audit) == 1
    assert (await call("GET", "/api/people")).json() == {"people": []}


async def test_an_unknown_rule_is_not_found(call: Call) -> None:
    for number in ("1", "x", "9" * 30):
        assert (await call("DELETE", f"/api/rules/{number}")).status == 404
