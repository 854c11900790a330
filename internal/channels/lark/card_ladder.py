"""The next form of a message after Lark refused one, and the refusals learned in each chat.

The error code of a card determines the part to omit: full card → without mentions or pictures →
card without tables → rich text → text. Pure, except for the memory of each chat.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec
from cachetools import TTLCache

from internal.channels.lark.message_format import WITH_MENTIONS, MessagePart

Cause = Literal["mentions", "pictures", "tables"]
"""The field of `MessagePart` that caused the refusal of a card."""

CAUSES: Mapping[int, Cause] = {100290: "mentions", 200570: "pictures", 11310: "tables"}
"""The causes of card errors. 100290: a mentioned person cannot be found, for example since they
left the organization. 200570: an image key is not valid. 11310: too many tables."""
MEMORY_SECONDS = 24 * 3600.0
"""For so long a chat's refusals are remembered; Lark may accept it again later."""
_MAX_CHATS, _MAX_KEYS = 2_048, 2_048


class Refusals(msgspec.Struct, frozen=True):
    """Refusals of Lark in a chat: mentions of these people together, and this many tables."""

    mentions: tuple[frozenset[str], ...] = ()
    tables: int | None = None

    def rule_out(self, part: MessagePart) -> bool:
        """Return True if a message would be refused as an earlier one was."""
        if self.tables is not None and part.tables >= self.tables:
            return True
        return any(people <= part.mentions for people in self.mentions)

    def with_refused(self, part: MessagePart, code: int) -> "Refusals":
        """Return these and the refusal of a message; a wrong image key affects no other message."""
        match CAUSES.get(code):
            case "mentions" if part.mentions:
                known = [people for people in self.mentions if not part.mentions <= people]
                return msgspec.structs.replace(self, mentions=(*known, part.mentions))
            case "tables" if part.tables:
                fewest = part.tables if self.tables is None else min(self.tables, part.tables)
                return msgspec.structs.replace(self, tables=fewest)
            case _:
                return self


class RefusalMemory:
    """The refusals of each chat. A message that is tried again begins with the same form."""

    def __init__(self) -> None:
        self._chats: TTLCache[str, Refusals] = TTLCache(_MAX_CHATS, MEMORY_SECONDS)
        self._begun: TTLCache[str, Refusals] = TTLCache(_MAX_KEYS, MEMORY_SECONDS)

    def begin(self, key: str, chat_id: str) -> Refusals:
        """Return the refusals known in a chat at the first attempt to send a message.

        Another form has another uuid: with refusals learned later, a message whose first attempt
        succeeded without a response would be sent twice.
        """
        if key not in self._begun:
            self._begun[key] = self._chats.get(chat_id, Refusals())
        return self._begun[key]

    def note(self, chat_id: str, part: MessagePart, code: int) -> None:
        """Remember that a message was refused."""
        self._chats[chat_id] = self._chats.get(chat_id, Refusals()).with_refused(part, code)


def first_form(part: MessagePart, refusals: Refusals) -> MessagePart:
    """Return the best form of a message that is not known to be refused, else the simplest."""
    forms = (part, *part.alternatives)
    for number, form in enumerate(forms):
        if not refusals.rule_out(form):
            return form._replace(alternatives=forms[number + 1 :])
    return forms[-1]


def simpler_form(refused: MessagePart, code: int) -> MessagePart | None:
    """Return the form that comes after a refused one, None if there is none.

    If the error names the refused part, only that part is omitted; otherwise the next simpler form
    follows. Omitted parts stay omitted.
    """
    cause = CAUSES.get(code)
    is_named = cause is not None and bool(getattr(refused, cause))
    for number, form in enumerate(refused.alternatives):
        is_without = not getattr(form, cause) if cause and is_named else _is_other(form, refused)
        if is_without and form.mentions <= refused.mentions and form.pictures <= refused.pictures:
            return form._replace(alternatives=refused.alternatives[number + 1 :])
    return None


def _is_other(form: MessagePart, refused: MessagePart) -> bool:
    """Return True unless two messages only differ in their mentions."""
    names = (each.form.removesuffix(WITH_MENTIONS) for each in (form, refused))
    return len(set(names)) > 1
