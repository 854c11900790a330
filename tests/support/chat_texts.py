"""The texts of chat channels with the titles of all tools, as the application builds them."""

from internal.agent.domain.react.gates import CONTROL_SPECS, DEFERRED_TOOL_SPECS
from internal.agent.domain.tools import titles_by_tool
from internal.i18n.chat import ChatTexts
from internal.tools.registry import TOOLS

TOOL_TITLES = titles_by_tool([*(tool.spec for tool in TOOLS), *CONTROL_SPECS, *DEFERRED_TOOL_SPECS])
AUTO_TEXTS, EN_TEXTS = ChatTexts("auto", TOOL_TITLES), ChatTexts("en", TOOL_TITLES)
