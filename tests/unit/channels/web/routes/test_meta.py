"""Routes for health, processes, identity, profiles and the page."""

from functools import partial

from internal.agent.store.runs import ProcessEntry
from internal.channels.web.services import WebServices
from internal.observability.processes import SystemProcesses
from tests.support.web_calls import Call


async def test_health_is_brief_without_authentication(call: Call) -> None:
    assert (await call("GET", "/health", authorization=None)).json() == {"status": "ok"}
    assert {"database", "dispatcher"} <= (await call("GET", "/health")).json().keys()


async def test_profiles_are_sorted_and_one_is_the_default(call: Call) -> None:
    reply = (await call("GET", "/api/profiles")).json()
    assert [profile["name"] for profile in reply["profiles"]] == ["brief", "default"]
    assert reply["default"] == "default"


async def test_a_page_that_is_not_built_is_reported(call: Call) -> None:
    reply = await call("GET", "/", authorization=None)
    assert (reply.status, reply.json()["error"]["code"]) == (503, "page_not_built")


async def test_processes_are_listed_with_what_they_do(call: Call, services: WebServices) -> None:
    gateway = services.gateway
    database, stores = gateway.queries._database, gateway.queries._stores
    process = SystemProcesses().current("gateway-1")
    until = "2099-01-01T00:00:00.000Z"
    entry = ProcessEntry(str(process), "gateway", "build-1", process.pid, "1.2", "2026", until)
    await database.write(partial(stores.processes.add, entry))
    await database.write(partial(stores.leaderships.claim, "lark:a", str(process), until, None))
    [found] = (await call("GET", "/api/processes")).json()["processes"]
    assert found.pop("lease_age_seconds") < 0  # it lasts longer than any lease
    assert found == {
        "role": "gateway",
        "host": "build-1",
        "pid": process.pid,
        "version": "1.2",
        "started": "2026",
        "lease_until": until,
        "has_ended": False,
        "runs": 0,
        "leads": ["lark:a"],
    }
