"""HTTP requests over persistent connections, for the adapters that call a service.

- `messages`: a request, a response, and the encoding of a form with a file
- `session`: the connections. Imports aiohttp, which takes 0.2 s
"""
