"""The bar of open questions on the page in a browser."""

from collections.abc import Sequence

from playwright.sync_api import Locator, Page

from tests.support.anthropic_server import Call, Reply, When

GOAL = "Publish release 2.4"


def when(results: int, word: str = "") -> When:
    return When(last_user=word or None, results=results)


def planned(word: str = "", steps: Sequence[str] = ("Do it",)) -> Reply:
    return Reply(calls=[Call("plan", {"goal": GOAL, "steps": list(steps)})], when=when(0, word))


def shell(command: str, results: int, word: str = "") -> Reply:
    return Reply(calls=[Call("shell", {"command": command})], when=when(results, word))


def bar(page: Page) -> Locator:
    return page.get_by_role("region", name="Waiting")
