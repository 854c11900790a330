"""Search providers of web_search: the requests that they expect and the results that they send.

They do no I/O: `internal.tools.web_search` sends the requests. A new provider is one module and one
line in `registry`. Reading order:

- `provider`: the query, the results, and the port `SearchProvider`
- `searxng`, `brave`, `tavily`, `exa`, `bocha`: one HTTP API each
- `registry`: the list of providers
"""
