"""Storage shared by the hosts of a database, and the names of hosts."""

from functools import partial

import pytest

from internal.agent.app.hosts.shared_storage import SharedStorage, StoragePart, register_host
from internal.agent.domain.errors import Conflict, FilesUnavailable, LarkspurError
from internal.agent.store.database import Database
from internal.agent.store.files import HostRow
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1

REFUSAL = "These are not the attachments of the other hosts."


class Storage:
    """Storage with an id that can fail."""

    def __init__(self, marker: str = "") -> None:
        self.marker = marker
        self.failure = ""

    async def identify(self, new: str) -> str:
        if self.failure:
            raise FilesUnavailable(self.failure)
        self.marker = self.marker or new
        return self.marker

    def part(self, new: str) -> StoragePart:
        return StoragePart("attachments", self.identify, new, REFUSAL)


async def test_the_first_host_decides_and_the_others_must_have_the_same(
    database: Database, stores: Stores
) -> None:
    common = Storage()
    one = SharedStorage(database, stores, [common.part("id-1")])
    await one.open()
    await SharedStorage(database, stores, [common.part("id-2")]).open()
    assert common.marker == "id-1"
    for wrong in (Storage(), Storage("id-3")):
        with pytest.raises(LarkspurError, match=REFUSAL):
            await SharedStorage(database, stores, [wrong.part("id-4")]).open()
        assert wrong.marker in {"", "id-3"}


async def test_storage_that_cannot_be_reached_is_a_problem_until_it_can(
    database: Database, stores: Stores
) -> None:
    common = Storage()
    storage = SharedStorage(database, stores, [common.part("id-1")])
    await storage.open()
    await storage.check()
    assert storage.problem == ""
    common.failure = "the bucket does not answer"
    with pytest.raises(FilesUnavailable):
        await storage.check()
    assert storage.problem == "the bucket does not answer"
    common.failure, common.marker = "", "id-2"
    with pytest.raises(LarkspurError):
        await storage.check()
    assert storage.problem == REFUSAL
    common.marker = "id-1"
    await storage.check()
    assert storage.problem == ""


class Register:
    """Registers hosts."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self.database, self.stores = database, stores

    async def __call__(self, wanted: str = "", machine: str = "box", marker: str = "m1") -> str:
        return await self.database.write(
            partial(
                register_host,
                self.stores,
                wanted,
                machine=machine,
                marker=marker,
                folder="/f",
                now=T0,
            )
        )


@pytest.fixture
def register(database: Database, stores: Stores) -> Register:
    return Register(database, stores)


async def test_a_host_is_called_after_its_machine(register: Register) -> None:
    assert await register() == "box"
    assert await register(machine="renamed") == "box"  # its folder is known by that name
    assert await register(marker="m2-of-another") == "box-m2-of-"
    assert await register(marker="m2-of-another") == "box-m2-of-"
    assert await register(machine="mac", marker="") == "mac"
    names = [each.name for each in await register.database.read(register.stores.hosts.list_all)]
    assert names == ["box", "box-m2-of-", "mac"]


async def test_a_name_belongs_to_one_folder(register: Register) -> None:
    assert await register("one") == "one"
    with pytest.raises(Conflict, match="Another host of this database is called one"):
        await register("one", marker="m2")
    with pytest.raises(Conflict, match="The workspaces in /f are those of host one"):
        await register("two")
    assert await register("three", marker="") == "three"  # its folder is shared
    assert await register("three", marker="m3") == "three"
    database, stores = register.database, register.stores
    await database.write(lambda: stores.hosts.renew("one", T1))
    assert await database.read(lambda: stores.hosts.get("one")) == HostRow("one", "m1", T1)
