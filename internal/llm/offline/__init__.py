"""The offline demo model.

Reading order: `model`, `jobs`, `catalog` with the patterns and sentences of offline.toml,
`delegation`, `arithmetic`.
"""
