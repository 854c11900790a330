"""In which language the commands speak."""

from internal.config.terminal_env import terminal_facts
from internal.i18n.catalog import Language, resolve_language


def language() -> Language:
    """Return the language of the environment: `LARKSPUR_UI__LANGUAGE`, else the locale's."""
    facts = terminal_facts()
    return resolve_language(facts.language or "auto", facts.locale)
