"""The addresses of databases, for the settings and the storage. It does no I/O.

- `address`: the URL of a PostgreSQL database
- `parameters`: its parameters, as providers and other clients write them
"""
