"""Commands on stored records.

Modules: `sessions`, `cost`, `pair`, `rules`, `audit`, `lark`.
"""
