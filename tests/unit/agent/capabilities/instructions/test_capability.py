"""The instructions that a run reads from files and from the settings of its chat."""

from functools import partial
from typing import NamedTuple

from internal.agent.capabilities.instructions.blocks import PREAMBLE
from internal.agent.capabilities.instructions.capability import InstructionsCapability
from internal.agent.capabilities.run_draft import DraftChange, PromptScope, RunDraft
from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.tasks import RunSpec
from internal.agent.ports.instructions import FoundInstructions, Instruction
from internal.agent.ports.llm import ModelLimits
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores

DRAFT = RunDraft(ModelLimits(200_000, 32_000), 128, ())
SPEC = RunSpec(instructions="from the program")


class OwnersFile(NamedTuple):
    text: str

    def read(self, _workspace: str | None, /) -> FoundInstructions:
        return FoundInstructions((Instruction("owner", self.text, "AGENTS.md"),))


def completed(change: DraftChange) -> Read[RunDraft]:
    changed = change(DRAFT)
    assert not isinstance(changed, RunDraft), "it reads the settings of the chat"
    return (yield from changed)


async def test_the_conversation_begins_with_all_instructions(
    database: Database, stores: Stores
) -> None:
    settings = ChatSettings(instructions="from the chat")
    await database.write(partial(stores.chats.save_settings, "lark:a:b", settings))
    capability = InstructionsCapability(OwnersFile("from the owner\u202e"), stores)
    texts = {}
    for chat in ("lark:a:b", ""):
        change = capability.contribute(PromptScope(SPEC, "/srv", chat=chat))
        draft = await database.read(partial(completed, change))
        (opening,) = (open_with(10_000) for open_with in draft.openings)
        assert opening.text.startswith(PREAMBLE)
        texts[chat] = [part.kind for part in opening.parts]
        assert "from the owner\\u202e" in opening.text
        assert ("from the chat" in opening.text) == bool(chat)
    assert texts == {
        "lark:a:b": ["rules", "owner", "chat", "caller"],
        "": ["rules", "owner", "caller"],
    }
