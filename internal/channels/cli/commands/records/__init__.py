"""Commands on stored records.

Modules: `sessions`, `cost`, `pair`, `rules`, `audit`, `feedback`, `dead_letters`.
"""
