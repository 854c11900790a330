"""Places that people share."""

import asyncio

from internal.agent.ports.fair_slots import PERSON, FairSlots


class Uses:
    """Uses of slots, each until it is ended. `had` holds the names that got a slot, in order."""

    def __init__(self, count: int) -> None:
        self.slots = FairSlots(count)
        self.had: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, *names: str) -> None:
        """Ask for places; a name is the person and a digit."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._use(name))
            await _settled()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.tasks[name]
        await _settled()

    async def _use(self, name: str) -> None:
        PERSON.set(name[:-1])
        async with self.slots.take():
            self.had.append(name)
            await self.ends[name].wait()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_person_has_half_of_the_places_and_the_owner_all() -> None:
    uses = Uses(4)
    await uses.begin("anna1", "anna2", "anna3", "ben1", "1", "2")
    assert uses.had == ["anna1", "anna2", "ben1", "1"]
    await uses.end("ben1")
    assert uses.had[4:] == ["2"], "anna has her share"
    await uses.end("anna2")
    assert uses.had[5:] == ["anna3"]
    for name in ("anna1", "anna3", "1", "2"):
        await uses.end(name)


async def test_people_who_wait_come_in_turn() -> None:
    uses = Uses(1)
    await uses.begin("anna1", "anna2", "anna3", "ben1", "ben2", "cleo1")
    for name in ("anna1", "anna2", "ben1", "cleo1", "anna3", "ben2"):
        assert uses.had[-1] == name
        await uses.end(name)


async def test_a_cancelled_use_gives_its_place_to_the_next() -> None:
    uses = Uses(1)
    await uses.begin("anna1", "ben1", "cleo1", "dora1")
    uses.tasks["ben1"].cancel()
    uses.ends["anna1"].set()
    await asyncio.wait([uses.tasks["anna1"]])
    uses.tasks["cleo1"].cancel()
    await asyncio.wait([uses.tasks["ben1"], uses.tasks["cleo1"]])
    await _settled()
    assert uses.had[-1] == "dora1"
    await uses.end("dora1")
    await uses.begin("anna2")
    assert uses.had[-1] == "anna2"
    await uses.end("anna2")
