"""Normal forms that do not depend on the Python version. They do no I/O.

- `urls`: URLs taken apart and joined
- `addresses`: host names and IP addresses, and which of them may be connected to
- `web_encodings`: text encodings by their declared names
- `names`: names of files that look the same
- `json_schema`: JSON Schemas of types
- `instants`: points in time
- `http_status`: reason phrases of HTTP
"""
