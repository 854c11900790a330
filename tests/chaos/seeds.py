"""Seeded choices. CHAOS_SEED selects others; a failure prints the plan that was chosen."""

import os
import random

SEED = os.environ.get("CHAOS_SEED", "1")  # noqa: TID251 - for these tests, not for Larkspur


def seeded(name: str) -> random.Random:
    """Return a source of choices with a name, always the same ones for a seed."""
    return random.Random(f"{SEED} {name}")  # noqa: S311 - chaos, not a secret
