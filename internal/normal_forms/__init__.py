"""Normal forms that do not depend on the Python version. They do no I/O.

- `urls`: URLs taken apart and joined
- `addresses`: host names and IP addresses, and which of them may be connected to
- `names`: names of files that look the same
- `json_schema`: JSON Schemas of types
- `optional_fields`: null in place of a default
- `instants`: points in time
- `time_zones`: time zones by their names, and local times
- `http_status`: reason phrases of HTTP
"""
