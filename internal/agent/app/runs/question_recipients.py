"""Question recipients: people who get a copy of a question that nobody in its chat may answer."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from internal.agent.domain.principals import Right, RoleAssignment
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import Origin
from internal.agent.store.database import Read
from internal.agent.store.stores import Stores

MAX_RECIPIENTS = 5


class ChatOperators(NamedTuple):
    """The settings of an account about a chat. Users are named by ids of the service.

    `users` are its operators besides the paired ones; with `is_everyone` all people in the chat
    are. `wanted` limits the recipients to these users, None for no limit; with `only_owners` they
    are owners.
    """

    users: tuple[str, ...] = ()
    is_everyone: bool = False
    wanted: tuple[str, ...] | None = None
    only_owners: bool = False


FindOperators = Callable[[str], ChatOperators]
"""Returns the operators of a chat by its id at the service."""


class QuestionRecipients:
    """Chooses the recipients of questions, for the accounts that were added."""

    def __init__(self) -> None:
        self._accounts: dict[str, FindOperators] = {}

    def add_account(self, name: str, find_operators: FindOperators) -> None:
        """Choose recipients for the chats of an account such as `lark:cli_1`."""
        self._accounts[name] = find_operators

    def address(
        self, stores: Stores, record: QuestionRecord, origin: Origin
    ) -> Read[QuestionRecord]:
        """Return a question that is asked now with its recipients, if nobody else may answer it.

        The operators of the chat come before the owners. Nothing is read if the settings or the
        kind of the question show that somebody in the chat may answer.
        """
        find_operators = self._accounts.get(f"{origin.channel}:{origin.app}")
        if find_operators is None or not record.chat or record.audience == "asker":
            return record
        operators, is_for_owner = find_operators(origin.chat_id), record.audience == "owner"
        account = f"{origin.channel}:{origin.app}:"
        asker = origin.principal.removeprefix(account)
        if not is_for_owner and _has_operator(operators, asker, is_direct=origin.direct):
            return record
        paired = yield from stores.roles.list_all()
        owners = _with_role(paired, "owner", account)
        others = [*operators.users, *_with_role(paired, "operate", account)]
        able = owners if is_for_owner else [*others, *owners]
        if asker in able or (able and not is_for_owner and not origin.direct):
            return record
        chosen = owners if is_for_owner or operators.only_owners else others or owners
        if operators.wanted is not None:
            chosen = [user for user in operators.wanted if user in able]
        recipients = tuple(dict.fromkeys(chosen))[:MAX_RECIPIENTS]
        question = replace(record.question, is_for_others=True, recipients=recipients)
        return record._replace(question=question)


def _has_operator(operators: ChatOperators, asker: str, *, is_direct: bool) -> bool:
    """Return True if the settings name somebody in the chat of a task."""
    if operators.is_everyone or asker in operators.users:
        return True
    return bool(operators.users) and not is_direct


def _with_role(people: Iterable[RoleAssignment], role: Right, account: str) -> list[str]:
    """Return the users of an account with a role."""
    return [
        each.principal.removeprefix(account)
        for each in people
        if each.role == role and each.principal.startswith(account)
    ]
