"""Which scopes an app needs for which calls.

From Lark's documentation and error messages; that reading one message of a group by its id needs no
scope for group messages is an assumption.
"""

from internal.simulators.lark.errors import NO_GROUP_SCOPE, NO_SCOPE, LarkError
from internal.simulators.lark.model import DEFAULT_SCOPES, GROUP_MESSAGES, URGENT, App, Chat

SEND = frozenset({"im:message", "im:message:send_as_bot"})
UPDATE = SEND | {"im:message:update"}
RECALL = SEND | {"im:message:recall"}
URGENT_MESSAGES = frozenset({URGENT, "im:message.urgent:app_send"})
READ = frozenset({"im:message", "im:message:readonly", "im:message.history:readonly"})
REACT = frozenset({"im:message", "im:message.reactions:write_only"})
READ_REACTIONS = frozenset({"im:message", "im:message:readonly", "im:message.reactions:read"})
MEDIA = frozenset({"im:resource", "im:resource:upload"})
OWN_MEDIA = frozenset({"im:resource"})
READ_CHAT = frozenset({"im:chat", "im:chat:readonly", "im:chat:read"})
READ_MEMBERS = frozenset({"im:chat", "im:chat:readonly", "im:chat.members:read"})
CARDS = frozenset({"cardkit:card:write"})
TENANT_INFO = frozenset({"tenant:tenant:readonly"})
CONTACTS = frozenset({"contact:user.base:readonly", "contact:contact.base:readonly"})
APP_INFO = frozenset({"application:application:self_manage", "admin:app.info:readonly"})
ALL_SCOPES = DEFAULT_SCOPES.union(
    APP_INFO,
    {GROUP_MESSAGES},
    SEND,
    UPDATE,
    RECALL,
    URGENT_MESSAGES,
    READ,
    REACT,
    READ_REACTIONS,
    MEDIA,
    READ_MEMBERS,
    CARDS,
)
"""Everything that the simulator distinguishes."""


def check_scopes(app: App, scopes: frozenset[str]) -> None:
    """Check that the app has one of the scopes, or that none is needed.

    Raises:
        LarkError: It has none of them.
    """
    if scopes and not any(map(app.has_scope, scopes)):
        needed = ", ".join(sorted(scopes))
        sentence = f"Access denied. One of the following scopes is required: [{needed}]."
        raise LarkError(NO_SCOPE, sentence)


def check_listing(app: App, chat: Chat) -> None:
    """Check that the app may list the messages of a chat.

    Raises:
        LarkError: It is a group, and the app lacks the scope for all messages of its groups.
    """
    if chat.mode != "p2p" and not app.has_scope(GROUP_MESSAGES):
        ext = f"ext=need scope: {GROUP_MESSAGES}"
        raise LarkError(NO_GROUP_SCOPE, f"Lack of necessary permissions, {ext}")
