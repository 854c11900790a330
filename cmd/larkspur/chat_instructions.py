"""Instructions of chats: finds them for the channels."""

from internal.agent.capabilities.instructions.chat_instructions import ChatInstructions
from larkspur.services import Services


def make_chat_instructions(services: Services) -> ChatInstructions:
    """Return the reader of the instructions of chats."""
    return ChatInstructions(
        services.database,
        services.stores,
        services.instruction_files,
        services.workspaces.folders.path,
    )
