"""The row of the gateway."""

from functools import partial

from internal.agent.store.database import Database
from internal.agent.store.runs import GatewayRow
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1


async def test_gateway_is_replaced_only_by_its_successor(
    database: Database, stores: Stores
) -> None:
    gateways = stores.gateways
    assert await database.read(gateways.get) is None
    assert await database.write(partial(gateways.claim, "one", T0))
    assert not await database.write(partial(gateways.claim, "two", T0))
    assert not await database.write(partial(gateways.claim, "two", T0, "none"))
    assert await database.write(partial(gateways.claim, "two", T0, "one"))

    assert not await database.write(partial(gateways.renew, "one", T1))
    assert await database.write(partial(gateways.renew, "two", T1))
    await database.write(partial(gateways.remove, "one"))
    assert await database.read(gateways.get) == GatewayRow("two", T1)
    await database.write(partial(gateways.remove, "two"))
    assert await database.read(gateways.get) is None
