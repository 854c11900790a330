"""Normal forms that do not depend on the Python version. They do no I/O.

- `urls`: URLs taken apart and joined
- `json_schema`: JSON Schemas of types
"""
