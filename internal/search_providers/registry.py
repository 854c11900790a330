"""The list of search providers."""

from internal.search_providers.bocha import Bocha
from internal.search_providers.brave import Brave
from internal.search_providers.exa import Exa
from internal.search_providers.provider import SearchProvider
from internal.search_providers.searxng import SearxNg
from internal.search_providers.tavily import Tavily

PROVIDERS: tuple[type[SearchProvider], ...] = (SearxNg, Brave, Tavily, Exa, Bocha)
"""All providers, in the order in which they are asked if the settings name none."""
