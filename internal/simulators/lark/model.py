"""Records of the simulated Lark: apps, people, chats, messages, media and cards."""

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TENANT = "tk_larksim"

GROUP_MESSAGES = "im:message.group_msg"
"""The scope for all messages of a group: to receive events of them and to list them."""
URGENT = "im:message.urgent"
"""The scope for urgent messages."""
DIRECT_EVENTS, MENTION_EVENTS = "im:message.p2p_msg:readonly", "im:message.group_at_msg:readonly"
ENTRY_EVENTS = "im:chat.access_event.bot_p2p_chat:read"
"""The scope for the event that a direct chat was opened."""
BOT_MENTION_EVENTS = "im:message.group_at_msg.include_bot:readonly"
"""The scope for messages of other bots in groups that mention this one."""
BOT_MESSAGES = "im:message.group_msg.include_bot:read"
"""The scope for all messages of other bots in groups."""
DEFAULT_SCOPES = frozenset(
    {
        DIRECT_EVENTS,
        MENTION_EVENTS,
        ENTRY_EVENTS,
        "contact:user.base:readonly",
        "im:chat:read",
        "im:chat.members:read",
        "im:message.reactions:write_only",
        "im:message:readonly",
        "im:message:send_as_bot",
        "im:resource",
        "tenant:tenant:readonly",
        "application:application:self_manage",
    }
)
"""The scopes that docs/lark.md lists, but for all messages of groups, urgent ones, and bots."""
DEFAULT_EVENTS = frozenset(
    {
        "im.chat.disbanded_v1",
        "im.chat.member.bot.added_v1",
        "im.chat.member.bot.deleted_v1",
        "im.message.reaction.created_v1",
        "im.message.reaction.deleted_v1",
        "im.message.recalled_v1",
        "im.message.receive_v1",
        "im.message.updated_v1",
    }
)
"""The events that docs/lark.md lists. The simulator sends all events, whatever is listed here."""


def new_id(prefix: str) -> str:
    """Return a new id in Lark's format, such as `om_…`."""
    return f"{prefix}_{secrets.token_hex(16)}"


def encode(value: Any) -> bytes:
    """Return compact UTF-8 JSON; lone surrogates become question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class App:
    """A self-built app with a bot, its granted scopes and its event subscriptions.

    With `hears_all` it also has the scope for all messages of its groups.
    """

    app_id: str
    secret: str = field(repr=False)
    name: str = "Larkspur"
    hears_all: bool = False
    scopes: frozenset[str] = DEFAULT_SCOPES
    events: frozenset[str] = DEFAULT_EVENTS
    callbacks: frozenset[str] = frozenset({"card.action.trigger"})

    def has_scope(self, scope: str) -> bool:
        """Return True if the app was granted this scope."""
        return scope in self.scopes or (self.hears_all and scope == GROUP_MESSAGES)

    @property
    def open_id(self) -> str:
        """The bot's open_id, derived from the app id."""
        return "ou_" + hashlib.sha256(self.app_id.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Person:
    """A simulated person. With another `tenant_key` it is a guest of another organization."""

    open_id: str
    user_id: str
    union_id: str
    name: str
    tenant_key: str = TENANT
    time_zone: str = ""

    def ids(self) -> Json:
        """Return the ids as events contain them."""
        return {"open_id": self.open_id, "user_id": self.user_id, "union_id": self.union_id}


@dataclass(slots=True)
class Chat:
    """A chat. `mode` is p2p, group or topic; `members` are open_ids, `bots` app ids."""

    chat_id: str
    mode: str
    name: str
    members: list[str]
    bots: set[str]

    @property
    def kind(self) -> str:
        """The `chat_type` in events."""
        return "p2p" if self.mode == "p2p" else "group"


@dataclass(frozen=True, slots=True)
class Reaction:
    """An emoji on a message."""

    reaction_id: str
    emoji: str
    operator: str
    operator_type: str
    at_ms: int

    def public(self) -> Json:
        """Return the reaction as the API returns it."""
        return {
            "reaction_id": self.reaction_id,
            "operator": {"operator_id": self.operator, "operator_type": self.operator_type},
            "action_time": str(self.at_ms),
            "reaction_type": {"emoji_type": self.emoji},
        }


@dataclass(slots=True)
class ChatMessage:
    """A message. `sender` is an open_id or app_id; `content` has the form of the API."""

    message_id: str
    chat_id: str
    sender: str
    sender_type: str
    msg_type: str
    content: str
    created: int
    mentions: list[Json] = field(default_factory=list)
    parent_id: str = ""
    root_id: str = ""
    thread_id: str = ""
    card_id: str = ""
    card: Json | None = None
    updated: int = 0
    edits: int = 0
    deleted: bool = False
    reactions: list[Reaction] = field(default_factory=list)
    children: list["ChatMessage"] = field(default_factory=list)
    tenant_key: str = TENANT
    urgent: list[str] = field(default_factory=list)
    """The open_ids of the people who were alerted to it."""

    def places(self) -> Json:
        """Return the ids of its root, parent and thread that are set."""
        named = {
            "root_id": self.root_id,
            "parent_id": self.parent_id,
            "thread_id": self.thread_id,
        }
        return {name: value for name, value in named.items() if value}

    def public(self) -> Json:
        """Return the message as `message.get` returns it."""
        content = "This message was recalled" if self.deleted else self.content
        kind = "app_id" if self.sender_type == "app" else "open_id"
        return {
            "message_id": self.message_id,
            **self.places(),
            "msg_type": self.msg_type,
            "create_time": str(self.created),
            "update_time": str(self.updated or self.created),
            "deleted": self.deleted,
            "updated": bool(self.updated),
            "chat_id": self.chat_id,
            "sender": {
                "id": self.sender,
                "id_type": kind,
                "sender_type": self.sender_type,
                "tenant_key": self.tenant_key,
            },
            "body": {"content": content},
            "mentions": [_flat(mention) for mention in self.mentions],
        }


def _flat(mention: Json) -> Json:
    """Return a mention in the API's format; events nest its ids."""
    return {
        "key": mention["key"],
        "id": mention["id"]["open_id"],
        "id_type": "open_id",
        "name": mention["name"],
        "tenant_key": TENANT,
    }


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a file. `app_id` is the uploader, "" for a person."""

    key: str
    kind: str
    name: str
    data: bytes = field(repr=False)
    app_id: str = ""


@dataclass(slots=True)
class CardEntity:
    """A CardKit card: its JSON and the last sequence number."""

    card_id: str
    app_id: str
    content: Json
    created: float
    sequence: int = 0
    streaming_since: float | None = None
    message_id: str = ""


@dataclass(slots=True)
class ClickToken:
    """The state of a callback token."""

    message_id: str
    app_id: str
    at: float
    uses: int = 0
    answered: bool = False
