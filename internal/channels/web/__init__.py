"""The web channel: the HTTP API, the event streams and the page, served by uvicorn.

Reading order: `services` (dependencies of the channel), `server`, `app`, `middleware`, `auth`,
`endpoints`, `routes`, `requests`, `schemas`, `errors`, `downloads`, `openapi`, `event_streams`,
`sse`, `http_protocol`, `static_page`.
"""
