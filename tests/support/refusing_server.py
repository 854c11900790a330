"""Scripted model servers that refuse requests with one kind of part, in both wire formats."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Refusal, Script

Rule = Callable[[dict[str, Any]], str]
"""Returns the words with which a request is refused, "" for one that is taken."""


class RefusingOpenAI(ScriptedOpenAI):
    """Refuses requests by a rule; `refused` are their bodies."""

    def __init__(self, rule: Rule, script: Script = (), *, status: int = 400) -> None:
        super().__init__(script)
        self._rule, self._status = rule, status
        self.refused: list[dict[str, Any]] = []

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        super().check(headers, body, api_key)
        if words := self._rule(body):
            self.refused.append(body)
            raise Refusal(self._status, words)


class RefusingAnthropic(ScriptedAnthropic):
    """Refuses requests by a rule; `refused` are their bodies."""

    def __init__(self, rule: Rule, script: Script = (), *, status: int = 400) -> None:
        super().__init__(script)
        self._rule, self._status = rule, status
        self.refused: list[dict[str, Any]] = []

    def check(self, headers: Mapping[str, str], body: Any, api_key: str | None) -> None:
        super().check(headers, body, api_key)
        if words := self._rule(body):
            self.refused.append(body)
            raise Refusal(self._status, words)


def refuse_pictures(words: str) -> Rule:
    """Return the rule of a model that cannot see."""
    return lambda body: words if picture_count(body) else ""


def refuse_tools(*names: str, words: str) -> Rule:
    """Return the rule of a server that does not take some tools."""
    return lambda body: words if {*names} & {*offered_tools(body)} else ""


def offered_tools(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers."""
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def picture_count(body: Mapping[str, Any]) -> int:
    """Return how many pictures a request shows."""
    text = json.dumps(body["messages"])
    return text.count('"image_url": {') + text.count('"type": "image"')
