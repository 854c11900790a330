"""The builder of the prompts of runs, with its services."""

from functools import partial
from typing import TYPE_CHECKING

from internal.agent.app.prompt.run_prompt import RunPromptBuilder
from internal.agent.capabilities.registry import Capabilities
from internal.agent.ports.sandbox import Sandbox
from internal.config.time_zone import find_time_zone
from internal.llm.lessons.book import LessonBook

if TYPE_CHECKING:
    from internal.agent.ports.tools import ToolSource
    from larkspur.services import Services


def make_prompt_builder(
    services: "Services",
    sandbox: Sandbox,
    tools: "ToolSource",
    *,
    capabilities: Capabilities,
    lessons: LessonBook | None = None,
) -> RunPromptBuilder:
    """Return the builder of the prompts of runs. `lessons` say how many tools a model takes."""
    book, provider = lessons or LessonBook(), services.settings.llm.provider
    return RunPromptBuilder(
        tools,
        services.model_book,
        capabilities=capabilities,
        sandbox=sandbox.capabilities,
        clock=services.clock,
        max_tools=partial(book.max_tools, provider),
        time_zone=find_time_zone(),
    )
