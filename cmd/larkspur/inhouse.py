"""One shot in this process: the house is built for it and closed behind it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from internal.channels.cli.in_process import Here
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import OneShotRequest
from internal.config.home import prepare
from internal.config.loader import Loaded, load
from internal.observability.logs import configure_logging
from larkspur.build import TerminalHouse, terminal_house
from larkspur.failing import sentences

T = TypeVar("T")


def run(order: OneShotRequest, config: str | None) -> int:
    """Do the order and return the exit code.

    Raises:
        Leave: it cannot be done.
    """
    return in_house(config, lambda house: Here(house, Output()).run(order))


def newest(config: str | None) -> list[dict[str, Any]]:
    """Return the sessions that were last active in the terminal or on the page.

    Raises:
        Leave: they cannot be read.
    """
    return in_house(config, lambda house: Here(house, Output()).newest())


def in_house(config: str | None, work: Callable[[TerminalHouse], Awaitable[T]]) -> T:
    """Build the house, do the work in it, and return what it gives.

    Raises:
        Leave: the house cannot be built, or the work fails.
    """

    async def inside(loaded: Loaded) -> T:
        async with terminal_house(loaded) as house:
            for sentence in house.news:
                print_error(sentence)
            return await work(house)

    with sentences():
        loaded = load(config=config)
        prepare(loaded.home)
        if loaded.settings.llm.provider == "offline" and "llm.provider" not in loaded.origins:
            print_error(
                "No key is set: the offline demo model answers. ANTHROPIC_API_KEY sets a real one."
            )
        _log_only_trouble(loaded)
        return asyncio.run(inside(loaded))


def _log_only_trouble(loaded: Loaded) -> None:
    key = loaded.settings.llm.api_key
    configure_logging(secrets=[] if key is None else [key.get_secret_value()])
    for name in ("internal", "larkspur"):
        logging.getLogger(name).setLevel(logging.ERROR)
