"""Principals: people, identified by a verified credential."""

from typing import Literal

import msgspec

from internal.agent.domain.errors import Forbidden

Right = Literal["talk", "operate", "owner"]


class Principal(msgspec.Struct, frozen=True):
    """A person. `id` is unique over all channels, such as `local` or `lark:APP:ou_…`."""

    id: str
    name: str = ""
    roles: frozenset[Right] = frozenset()

    def may(self, right: Right) -> bool:
        """Return True if the person has the right; the owner has every right."""
        return right in self.roles or "owner" in self.roles

    def require_owner(self, action: str) -> None:
        """Check that the person is the owner; `action` ends the sentence "Only the owner may".

        Raises:
            Forbidden: the person is not.
        """
        if not self.may("owner"):
            raise Forbidden(f"Only the owner may {action}.", reason_code="owner_only")


LOCAL_OWNER = Principal("local", "local owner", frozenset({"talk", "operate", "owner"}))
"""The principal of anyone with the local token or access to the data folder."""

OWNER_NAME = "the owner"
"""The local owner in sentences that others read too; where only the owner reads, it is "you"."""


AuditAction = Literal[
    "question.asked",
    "question.answered",
    "question.refused",
    "task.stopped",
    "task.applied",
    "change.undone",
    "rule.written",
    "dead_letter.retried",
    "dead_letter.dismissed",
    "rule.removed",
    "pairing.offered",
    "pairing.redeemed",
    "pairing.refused",
    "person.removed",
    "session.deleted",
    "session.moved",
    "settings.changed",
    "skill.accepted",
    "skill.rejected",
    "mcp.accepted",
    "mcp.rejected",
    "webhook.given_up",
]


class RoleAssignment(msgspec.Struct, frozen=True):
    """The role of a person of a chat channel, granted by a pairing code."""

    principal: str
    name: str
    role: Right
    via: str
    created: str


class AuditEntry(msgspec.Struct, frozen=True):
    """What `principal` did to `target` through the channel `via`. `at` is RFC 3339."""

    at: str
    principal: str
    via: str
    action: AuditAction
    target: str
    detail: str
