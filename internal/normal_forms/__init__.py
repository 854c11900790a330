"""Normal forms that do not depend on the Python version. They do no I/O.

- `urls`: URLs taken apart and joined
- `json_schema`: JSON Schemas of types
- `instants`: points in time
- `http_status`: reason phrases of HTTP
"""
