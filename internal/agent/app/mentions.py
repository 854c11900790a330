"""The tool with which a run mentions people of its group chat: the reply notifies them."""

import difflib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec

from internal.agent.domain.errors import LarkspurError, ToolError
from internal.agent.domain.events.types import PeopleMentioned
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Origin
from internal.agent.domain.text import truncate_line
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.tools import CallContext, ToolOutcome, WithheldTool
from internal.agent.store.database import Database, Read
from internal.agent.store.stores import Stores
from internal.normal_forms.json_schema import type_schema

MAX_MENTIONS = 5
"""People whom a reply notifies because the run mentions them."""
MAX_CANDIDATES = 10
MAX_NAME_CHARS = 100
_LABEL_CHARS = 6
_EVERYONE = frozenset({"all", "everyone", "everybody", "here", "channel", "所有人", "全体成员"})


class ChatMember(NamedTuple):
    """A person in a chat, by the id and the display name at its service."""

    user_id: str
    name: str


ListMembers = Callable[[str], Awaitable[Sequence[ChatMember]]]
"""Returns the people in a chat by its id at the service."""


class _Mention(msgspec.Struct):
    people: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_CHARS)]],
        msgspec.Meta(
            min_length=1,
            max_length=MAX_MENTIONS,
            description="Names as the chat shows them; with the sign # and the end of the id if"
            " several people have the same name.",
        ),
    ]


MENTION_SPEC = ToolSpec(
    name="mention_people",
    description=(
        "Notify people of this group chat with your answer, which then begins with their mentions."
        f" At most {MAX_MENTIONS} people per answer; only if they must know it or do something."
        " Names in the text of the answer notify nobody."
    ),
    parameters=type_schema(_Mention)["$defs"]["_Mention"],
    # it changes nothing but who is notified of an answer that they can read
    risk="read",
    idempotent=True,
    title={"en": "Mention people", "zh": "提醒成员"},
    only_in_groups=True,
)


class _Place(NamedTuple):
    """The chat of a run, and the principals that it has mentioned."""

    origin: Origin
    mentioned: tuple[str, ...]


class _Payload(msgspec.Struct):
    people: tuple[str, ...] = ()


class _Event(msgspec.Struct):
    payload: _Payload


_event = msgspec.json.Decoder(_Event).decode


def mentioned_people(events: Sequence[bytes]) -> tuple[str, ...]:
    """Return the principals whom a run mentioned by its `PeopleMentioned` events, in order."""
    found = dict.fromkeys(each for event in events for each in _event(event).payload.people)
    return tuple(found)[:MAX_MENTIONS]


class MentionTool:
    """Mentions people of the group chats of the accounts that were added. Is a `ToolSource`."""

    def __init__(self, database: Database, stores: Stores) -> None:
        self._database, self._stores = database, stores
        self._accounts: dict[str, ListMembers] = {}

    def add_account(self, name: str, list_members: ListMembers) -> None:
        """Find people in the chats of an account such as `lark:cli_1`."""
        self._accounts[name] = list_members

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool."""
        return (MENTION_SPEC,)

    def withheld(self) -> tuple[WithheldTool, ...]:
        """Return (): it is offered in all group chats."""
        return ()

    async def preview(self, _context: CallContext, _name: str, _given: dict[str, Any], /) -> str:
        """Return "": no file changes."""
        return ""

    async def run(
        self, context: CallContext, name: str, arguments: dict[str, Any], /
    ) -> ToolOutcome:
        """Store whom the reply of the run notifies.

        Raises:
            ToolError: a name is not that of one member, there are too many, or the members cannot
                be read.
        """
        try:
            wanted = msgspec.convert(arguments, _Mention).people
        except msgspec.ValidationError as error:
            raise ToolError(f"{name}: {error}") from error
        place = await self._database.read(partial(self._place, context.run_id))
        account = "" if place is None else f"{place.origin.channel}:{place.origin.app}"
        list_members = self._accounts.get(account)
        if place is None or place.origin.direct or list_members is None:
            raise ToolError("people can be mentioned in group chats only")
        try:
            members = await list_members(place.origin.chat_id)
        except LarkspurError as error:
            raise ToolError(
                f"the members of this chat cannot be read, so nobody is mentioned: {error}"
            ) from error
        found = list(dict.fromkeys(_find(each, members) for each in wanted))
        people = tuple(f"{account}:{each.user_id}" for each in found)
        if len({*place.mentioned, *people}) > MAX_MENTIONS:
            raise ToolError(
                f"an answer mentions at most {MAX_MENTIONS} people, and this one mentions"
                f" {len(place.mentioned)}"
            )
        names = tuple(each.name for each in found)
        return ToolOutcome(
            f"The answer will begin with mentions that notify: {', '.join(names)}.",
            events=(PeopleMentioned(people=people, names=names),),
        )

    def _place(self, run_id: RunId) -> Read[_Place | None]:
        run = yield from self._stores.runs.get(run_id)
        task = None if run is None else (yield from self._stores.tasks.get(run.task_id))
        if task is None or not task.origin.chat_id:
            return None
        kinds = (PeopleMentioned.name,)
        events = yield from self._stores.events.list_of_kinds(run_id, kinds)
        return _Place(task.origin, mentioned_people([each.json for each in events]))


def _find(wanted: str, members: Sequence[ChatMember]) -> ChatMember:
    """Return the member with a name.

    Raises:
        ToolError: nobody has it, or several have; the message names candidates.
    """
    wanted = " ".join(wanted.removeprefix("@").split())
    if wanted.casefold() in _EVERYONE:
        raise ToolError("everyone cannot be mentioned: name the people who must know it")
    name, _, label = wanted.rpartition("#")
    found = [each for each in members if _same(each.name, wanted)]
    if not found and name:
        found = [
            each
            for each in members
            if _same(each.name, name.strip()) and label and each.user_id.endswith(label)
        ]
    if len(found) == 1:
        return found[0]
    if found:
        raise ToolError(f"several people have the name {wanted!r}: {_list(found)}")
    near = difflib.get_close_matches(
        wanted.casefold(), [each.name.casefold() for each in members], n=MAX_CANDIDATES, cutoff=0.5
    )
    parts = wanted.casefold().split()
    likely = [
        each
        for each in members
        if each.name.casefold() in near or any(part in each.name.casefold() for part in parts)
    ]
    hint = f"; did you mean: {_list(likely)}?" if likely else ""
    raise ToolError(f"nobody in this chat has the name {wanted!r}{hint}")


def _same(name: str, wanted: str) -> bool:
    return " ".join(name.split()).casefold() == wanted.casefold()


def _list(members: Sequence[ChatMember]) -> str:
    """Return members as the tool accepts them, such as `Anna Li #9f3c21`."""
    shown = [
        f"{truncate_line(each.name, MAX_NAME_CHARS)} #{each.user_id[-_LABEL_CHARS:]}"
        for each in members[:MAX_CANDIDATES]
    ]
    more = len(members) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])
