"""Programs of others, installed from the registries, against a real gateway.

`make compatibility` runs all of them and rewrites `docs/compatibility.md`; `make compatibility
ONLY=openai-python` runs one row and keeps the others. It needs the registries of packages and
nothing else of the internet: a scripted model answers.
"""
