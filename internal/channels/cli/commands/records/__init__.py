"""Commands on stored records.

Modules: `sessions`, `cost`, `pair`, `rules`, `audit`, `dead_letters`.
"""
