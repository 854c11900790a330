"""The files panel of the page in a browser."""

from playwright.sync_api import Locator, Page

from tests.support.anthropic_server import Call, Reply, When


def making(command: str, word: str = "make", answer: str = "The files are ready.") -> list[Reply]:
    """A plan, a command, and an answer."""

    def when(results: int) -> When:
        return When(last_user=word, results=results)

    return [
        Reply(calls=[Call("plan", {"goal": "Make files", "steps": ["Make"]})], when=when(0)),
        Reply(calls=[Call("shell", {"command": command})], when=when(1)),
        Reply(text=answer, when=when(2)),
    ]


def title() -> Reply:
    """Return the reply to all other requests."""
    return Reply(text="Weekly prices")


def panel(page: Page) -> Locator:
    """Show the files of the session."""
    page.get_by_role("tab", name="Files").click()
    return page.get_by_role("tabpanel")


def opened(page: Page, within: Locator, name: str) -> Locator:
    """Open the preview of a file."""
    within.get_by_role("button", name=f"Open {name}").first.click()
    return page.get_by_role("dialog", name=name)
