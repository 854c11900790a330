"""In which language the commands speak."""

from internal.channels.cli.repl.words import Language, language_of
from internal.config.terminal_env import terminal_facts


def language() -> Language:
    """Return the language of the environment: `LARKSPUR_UI__LANGUAGE`, else the locale's."""
    facts = terminal_facts()
    return language_of(facts.language or "auto", facts.locale)
