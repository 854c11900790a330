"""The number of examples that a property test tries."""

from hypothesis import settings

QUICK = "quick"
"""The profile of `make test`. CI and a plain `pytest` try all examples."""
MIN_EXAMPLES = 2


def examples(count: int) -> settings:
    """Return settings of `count` examples without a deadline. The profile `quick` tries a tenth."""
    if settings.get_current_profile_name() == QUICK:
        count = max(count // 10, MIN_EXAMPLES)
    return settings(max_examples=count, deadline=None)
