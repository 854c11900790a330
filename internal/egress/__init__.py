"""Requests to other servers: one policy for all clients, and the transports that apply it.

- `addresses`: resolves a host and refuses it if one of its addresses is not permitted
- `proxies`: which proxy of the environment or of the settings is on the way to a server
- `certificates`: which certificate authorities are trusted
- `policy`: the three of them as one value, which a client is made with
- `messages`: a request, a response, why there is none, and the encoding of a form with a file
- `session`: connections for our own clients. Imports aiohttp, which takes 0.2 s
- `session_loader`: the same for clients that are made before aiohttp is imported
- `failures`: why a request of `session` failed. Imports aiohttp
- `sdk_transport`: connections for SDKs that take an httpx2 transport. Imports httpx2
"""
