"""The instructions of a run."""

from collections.abc import Sequence
from functools import partial

import msgspec

from internal.agent.capabilities.capability import Capability
from internal.agent.capabilities.instructions.blocks import (
    PREAMBLE,
    clean,
    fitting_blocks,
    instructions_text,
)
from internal.agent.capabilities.run_draft import DraftChange, Opening, PromptScope, RunDraft
from internal.agent.domain.text import text_tokens
from internal.agent.domain.usage import ContextPart
from internal.agent.ports.instructions import FoundInstructions, Instruction, InstructionFiles
from internal.agent.store.database import Read
from internal.agent.store.stores import Stores


class InstructionsCapability(Capability):
    """Lets the conversation begin with the instructions that apply."""

    name = "instructions"

    def __init__(self, files: InstructionFiles, stores: Stores) -> None:
        self._files, self._stores = files, stores

    def contribute(self, scope: PromptScope, /) -> DraftChange:
        """Read the instruction files."""
        found = self._files.read(scope.workspace).with_caller(scope.spec.instructions)
        # here, because escapes in long hostile texts take tens of milliseconds
        found = found._replace(texts=tuple(map(clean, found.texts)))
        return partial(self._add, scope.chat, found)

    def _add(self, chat: str, found: FoundInstructions, draft: RunDraft) -> Read[RunDraft]:
        if chat:
            settings = yield from self._stores.chats.get_settings(chat)
            found = found.with_chat(clean(Instruction("chat", settings.instructions)).text)
        openings = (*draft.openings, partial(_opening, found.texts))
        draft = msgspec.structs.replace(draft, openings=openings)
        return draft.with_problems(found.problems)


def _opening(cleaned: Sequence[Instruction], budget: int) -> Opening:
    blocks = fitting_blocks(cleaned, budget)
    if not blocks:
        return Opening()
    parts = (ContextPart(block.source, block.tokens, block.name) for block in blocks)
    rules = ContextPart("rules", text_tokens(PREAMBLE))
    return Opening(instructions_text(blocks), (rules, *parts))
