"""Commands about what the agent may do: permissions, plans that wait, questions and answers."""

from collections.abc import Sequence

from internal.channels.cli.client import GatewayError
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.text import truncate_line
from internal.channels.cli.repl.id_lookup import find_id
from internal.channels.cli.repl.open_question import OpenQuestion
from internal.channels.cli.repl.session import ReplSession

MODES = ("ask", "plan", "accept-edits", "deny", "full")
LISTED = 15
TITLE = 60
_REVIEWS = {"on": "always", "off": "off"}


class Permitting:
    """The part of the commands behind a slash that is about people and what they allow."""

    def __init__(self, session: ReplSession) -> None:
        self.session = session

    def say(self, *sentences: str) -> None:
        """Print sentences that are nobody's words."""
        rows = self.session.view.rows
        self.session.note(*(rows.note(one) for one in sentences))

    def list(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows in columns."""
        self.session.note(
            *align_columns([[truncate_line(cell, TITLE) for cell in row] for row in rows])
        )

    async def plan(self, rest: str) -> None:
        """Show the plan, or choose whether plans wait for the person."""
        view, words = self.session.view, self.session.words
        if rest in _REVIEWS:
            self.session.choices.plan_review = _REVIEWS[rest]
            self.say(getattr(words, f"review_{rest}"))
        elif rest:
            self.say(words.say("usage", usage="/plan [on|off]"))
        elif view.plan is None:
            self.say(words.no_plan)
        else:
            self.session.note(*view.rows.steps(view.plan))

    async def permissions(self, rest: str) -> None:
        """Show or change what tools may do unasked."""
        choices, words = self.session.choices, self.session.words
        kind, _, rule = rest.partition(" ")
        if kind in {"allow", "deny"} and rule.strip():
            await self._add_rule(kind, rule.strip())
            return
        if kind == "remove" and rule.strip().isdecimal():
            number = int(rule)
            await (await self.session.ready()).client.remove_rule(number)
            self.say(words.say("rule_removed", number=number))
            return
        if rest and rest not in MODES:
            usage = f"/permissions {'|'.join(MODES)} | allow RULE | deny RULE | remove NUMBER"
            self.say(words.say("usage", usage=usage))
            return
        if rest:
            choices.take_mode(rest)
        meanings = {"ask": words.mode_ask, "plan": words.mode_plan}
        meaning = {**meanings, "accept-edits": words.mode_edits}.get(choices.mode, "")
        self.say(words.say("mode_is", mode=choices.mode, meaning=meaning))
        await self._list_rules()

    async def _add_rule(self, kind: str, rule: str) -> None:
        check = (await self.session.ready()).check_rule
        try:
            check(rule, kind == "allow")
        except ValueError as error:
            raise GatewayError(str(error)) from None
        getattr(self.session.choices, kind).append(rule)
        self.say(self.session.words.say("rule_added", kind=kind, rule=rule))

    async def _list_rules(self) -> None:
        choices = self.session.choices
        here = [f"allow {one}" for one in choices.allow] + [f"deny {one}" for one in choices.deny]
        written = await (await self.session.ready()).client.rules()
        self.say(*(here or ([] if written else [self.session.words.rules_none])))
        if written:
            self.list([one.shown for one in written])

    async def questions(self, _rest: str) -> None:
        """List what waits for a person, in all sessions."""
        found = await (await self.session.ready()).client.questions()
        if not found:
            self.say(self.session.words.no_questions)
            return
        self.list([one.shown for one in found])

    async def answer(self, rest: str) -> None:
        """Answer a question of any session."""
        services, session = await self.session.ready(), self.session
        written, _, words = rest.partition(" ")
        if not words.strip():
            self.say(session.words.say("usage", usage="/answer ID yes|no|TEXT"))
            return
        found = {one.question_id: one for one in await services.client.questions()}
        name = find_id(written, list(found))
        try:
            given = services.decide(found[name].view, words.strip())
        except ValueError as error:
            raise GatewayError(str(error)) from None
        session.view.answering.add(name)
        try:
            view = (await services.client.answer(name, given)).view
            session.view.questions.pop(name, None)
        finally:
            session.view.answering.discard(name)
        session.note(*session.view.panel.closed(OpenQuestion(view), view["answer"], here=True))
