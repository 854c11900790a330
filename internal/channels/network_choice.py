"""Input values for the network access of commands. Standard library only."""

NETWORK_WORDS = ("off", "registries", "open")
NETWORK_CHOICES = "off, registries, open, or hosts such as github.com,*.example.com"


def parse_network_choice(text: str) -> str | tuple[str, ...]:
    """Return the word, or the hosts, which commas or blanks separate. They are not validated.

    Raises:
        ValueError: the text is blank.
    """
    words = text.replace(",", " ").split()
    if not words:
        raise ValueError(f"must be {NETWORK_CHOICES}")
    if len(words) == 1 and words[0].lower() in NETWORK_WORDS:
        return words[0].lower()
    return tuple(words)


def format_network_choice(setting: str | tuple[str, ...]) -> str:
    """Return a setting as `parse_network_choice` reads it."""
    return setting if isinstance(setting, str) else ", ".join(setting) or "off"
