"""The web_search tool.

- `results`: removes unsuitable parts of a result
- `cache`: keeps answers and shares requests
- `search`: asks the search providers in order
- `web_search`: the tool
"""
