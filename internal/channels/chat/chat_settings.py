"""Wishing: how a chat wants its coming tasks, what they cost, and who may do what there."""

import re
from functools import partial

from internal.agent.app.access import TooManyAttempts, WrongCode
from internal.agent.app.gateway import Gateway
from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.plans import PlanReview
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.channels.chat.command_parser import Command
from internal.channels.chat.policy import ChatRules
from internal.channels.chat.text_answers import Place, Speaker
from internal.channels.lark.directory import People
from internal.i18n.chat import find_switch

_MODEL = re.compile(r"[\w.:/@+-]{1,100}")


class Wishing:
    """Takes the wishes of a chat. Operators alone change them; they outlast its conversations."""

    def __init__(
        self,
        gateway: Gateway,
        database: Database,
        stores: Stores,
        rules: ChatRules,
        people: People,
    ) -> None:
        self._gateway, self._database, self._stores = gateway, database, stores
        self._rules, self._people = rules, people

    async def wish(self, chat: str) -> ChatSettings:
        """Return what is wished for the tasks of a chat."""
        return await self._database.read(partial(self._stores.chats.get_settings, chat))

    async def obey(self, command: Command, speaker: Speaker, place: Place) -> str:
        """Do what a command says and return the sentence about it."""
        match command:
            case Command("plan", wanted):
                return await self._plan(wanted, speaker)
            case Command("model", wanted):
                return await self._model(wanted, speaker)
            case Command("pair", code):
                return await self._pair(code, speaker, place)
            case _:
                return await self._usage(speaker, place)

    async def _plan(self, wanted: str, speaker: Speaker) -> str:
        """Turn the review of plans on or off. Less than the settings want, the owner alone may."""
        words, chat, to = speaker.words, speaker.answerer.chat, find_switch(wanted)
        wish = await self.wish(chat)
        if wanted and to not in {"on", "off"}:
            return words("plan_how", command=words.command("plan"))
        if wanted and not speaker.answerer.principal.may("operate"):
            return words("wish_not_yours")
        if wanted:
            less: PlanReview | None = "off" if speaker.answerer.principal.may("owner") else None
            wish = wish._replace(plan_review="always" if to == "on" else less)
            await self._database.write(partial(self._stores.chats.save_settings, chat, wish))
        review = wish.plan_review or self._rules.plan_review
        return words(f"plan_review_{review}", command=words.command("plan"))

    async def _model(self, wanted: str, speaker: Speaker) -> str:
        words, chat = speaker.words, speaker.answerer.chat
        wish = await self.wish(chat)
        if wanted and not speaker.answerer.principal.may("operate"):
            return words("wish_not_yours")
        if wanted and not _MODEL.fullmatch(wanted):
            return words("model_how", command=words.command("model"))
        if wanted:
            wish = wish._replace(model="" if find_switch(wanted) == "default" else wanted)
            await self._database.write(partial(self._stores.chats.save_settings, chat, wish))
        return words("model", model=wish.model) if wish.model else words("model_default")

    async def _pair(self, code: str, speaker: Speaker, place: Place) -> str:
        """Use a code up. One that a group has read is worth nothing any more."""
        words, principal = speaker.words, speaker.answerer.principal
        command, access = words.command("pair"), self._gateway.access
        if not place.direct:
            await access.revoke_code(code, principal.id, "lark")
            return words("pair_in_group", command=command)
        if not code:
            return words("pair_how", command=command)
        name = (await self._people.named(principal)).name
        try:
            role = await access.redeem_code(code, principal.id, name, "lark")
        except WrongCode:
            return words("pair_wrong")
        except TooManyAttempts:
            return words("pair_too_many")
        return words(f"paired_{role}")

    async def _usage(self, speaker: Speaker, place: Place) -> str:
        """Say what the chat's conversation has used."""
        words, costs = speaker.words, self._gateway.queries.usage
        at_hand = partial(self._stores.sessions.get_current, "lark", place.scope)
        session = await self._database.read(at_hand)
        if session is None:
            return words("usage_none")
        sums = await costs(LOCAL_OWNER, "session", session_id=session.id)
        if not sums:
            return words("usage_none")
        used, cost = sums[0].usage, sums[0].cost
        tokens = words("usage", input=used.total - used.output_tokens, output=used.output_tokens)
        return tokens if cost is None else f"{tokens} {words('usage_cost', cost=cost)}"
