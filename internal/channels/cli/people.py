"""Commands about questions and people: what waits, who may what, who did what."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from internal.channels.cli.client import GatewayClient, QuestionItem, Role
from internal.channels.cli.exit_codes import OK, USAGE, CliExit
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.phrases import Phrases
from internal.channels.cli.question_text import answer_command
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.text import plain_text, truncate_line

_MANY = 500
_CELL = 60
_WHOLE_ID = len("question-") + 27


class People(NamedTuple):
    """Does one of these commands. Every method returns the exit code; HostError says what cannot.

    Lists and codes go to standard output, what a person should know besides to standard error.
    """

    host: GatewayClient
    output: Output
    phrases: Phrases
    as_json: bool = False

    async def questions(self, *, everything: bool) -> int:
        """List the open questions, or all of them, oldest first, with how to answer each."""
        found = (await self.host.questions(None if everything else "open", limit=_MANY))[::-1]
        if self.as_json:
            return self._json([dict(one.view) for one in found])
        for one in found:
            self._say("  ".join(truncate_line(cell, _CELL) for cell in one.shown))
            if one.status == "open":
                until = self.phrases("until", time=_minute(one.expires))
                self._say(f"  {answer_command(one.view, self.phrases)}  ({until})")
        return self._none("nothing_waits") if not found else OK

    async def pair(self, role: Role) -> int:
        """Make a code and say what is to be done with it."""
        code, expires = await self.host.pair(role)
        if self.as_json:
            return self._json({"code": code, "role": role, "expires": expires})
        self._say(code)
        left = datetime.fromisoformat(expires) - datetime.now().astimezone()
        print_error(self.phrases("pair", minutes=round(left.total_seconds() / 60), code=code))
        may = self.phrases(f"role_{role}")
        print_error(self.phrases("pair_role", role=may, time=_minute(expires)))
        return OK

    async def known(self) -> int:
        """List who was given a right."""
        found = await self.host.people()
        return self._listed(
            [one._asdict() for one in found], [one.shown for one in found], "nobody"
        )

    async def unpair(self, written: str) -> int:
        """Take a person's right away; the end of their id is enough when it is one person's."""
        principal = find_question_id(written, [one.principal for one in await self.host.people()])
        await self.host.unpair(principal)
        print_error(self.phrases("removed", what=principal))
        return OK

    async def rules(self) -> int:
        """List the rules that people wrote by answering."""
        found = await self.host.rules()
        rows = [one.shown for one in found]
        return self._listed([one._asdict() for one in found], rows, "no_rules")

    async def remove_rule(self, number: int) -> int:
        """Delete a rule."""
        rule = next((one.rule for one in await self.host.rules() if one.number == number), "")
        await self.host.remove_rule(number)
        print_error(self.phrases("removed", what=rule or number))
        return OK

    async def audit(self) -> int:
        """List who did what, newest first."""
        found = await self.host.audit_entries(_MANY)
        return self._listed([one._asdict() for one in found], [one.shown for one in found])

    def _listed(
        self, found: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[str]], none: str = ""
    ) -> int:
        if self.as_json:
            return self._json(found)
        if not rows:
            return self._none(none) if none else OK
        for line in align_columns([[truncate_line(cell, _CELL) for cell in row] for row in rows]):
            self._say(plain_text(line.body).rstrip())
        return OK

    def _none(self, phrase: str) -> int:
        print_error(self.phrases(phrase))
        return OK

    def _json(self, found: object) -> int:
        self._say(json.dumps(found, indent=2, ensure_ascii=False))
        return OK

    def _say(self, text: str) -> None:
        self.output.write(f"{text}\n".encode("utf-8", "replace"))


async def find_question(host: GatewayClient, written: str) -> QuestionItem:
    """Return the question that is meant: of several of that name the open one.

    Raises:
        HostError: there is none.
        Leave: it is not clear which.
    """
    if written.startswith("question-") and len(written) > _WHOLE_ID:
        return await host.question(written)
    waiting = [one.question_id for one in await host.questions(limit=_MANY)]
    if not any(_names(written, one) for one in waiting):
        waiting = [one.question_id for one in await host.questions(None, limit=_MANY)]
    return await host.question(find_question_id(written, waiting))


def find_question_id(written: str, known: Sequence[str]) -> str:
    """Return the one id that begins or ends so.

    Raises:
        Leave: none does, or several do.
    """
    found = [written] if written in known else [one for one in known if _names(written, one)]
    if len(found) == 1:
        return found[0]
    shown = truncate_line(written, _CELL)
    if not found:
        raise CliExit(USAGE, f"Nothing here begins or ends with {shown}.")
    raise CliExit(USAGE, f"{shown} is not enough: {len(found)} begin or end with it.")


def _names(written: str, name: str) -> bool:
    bare = name.partition("-")[2]
    return bool(written) and (
        name.startswith(written) or bare.startswith(written) or name.endswith(written)
    )


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")
