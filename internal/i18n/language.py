"""The languages of everything that people read."""

from typing import Literal

Language = Literal["en", "zh"]
LanguageSetting = Literal["auto", "en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def resolve_language(setting: LanguageSetting | str, locale: str) -> Language:
    """Return the language of `ui.language`; `auto` uses the locale, such as `zh_CN.UTF-8`."""
    if setting == "auto":
        return "zh" if locale.lower().startswith("zh") else "en"
    return "zh" if setting == "zh" else "en"
