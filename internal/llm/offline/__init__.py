"""The offline demo model.

Reading order: `model`, `conversation`, `jobs`, `catalog` with the patterns and sentences of
offline.toml, `delegation`, `arithmetic`.
"""
