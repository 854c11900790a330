"""The greeting with which the bot introduces itself to a chat, once."""

from internal.agent.domain.chats import InboundMessage, OutgoingMessage, greeting_key, greeting_kind
from internal.channels.chat.transport import GreetingContent
from internal.i18n.chat import ChatPhrases

_SUGGESTIONS = ("suggest_abilities", "suggest_plan", "suggest_message")


def build_greeting(
    row: InboundMessage, phrases: ChatPhrases, *, is_direct: bool
) -> OutgoingMessage:
    """Return the greeting of the chat of an event."""
    key = "greeting_direct" if is_direct else "greeting_group"
    return OutgoingMessage(
        key=greeting_key(row.app, row.chat_id, is_direct=is_direct),
        channel=row.channel,
        app=row.app,
        chat_id=row.chat_id,
        reply_to="",
        body=phrases(key, help=phrases.command("help")),
    )


def greeting_content(outgoing: OutgoingMessage, phrases: ChatPhrases) -> GreetingContent | None:
    """Return the content of a greeting in its language, or None if it is another message."""
    kind = greeting_kind(outgoing.key)
    if not kind:
        return None
    suggestions = tuple(phrases(each) for each in _SUGGESTIONS)
    return GreetingContent(outgoing.body, suggestions, phrases, is_direct=kind == "direct")
