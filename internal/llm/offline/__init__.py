"""The offline demo model.

Reading order: `model`, `jobs` with the patterns and sentences of offline.toml, `arithmetic`.
"""
