"""The language of messages follows the setting, then the locale."""

from internal.i18n.language import resolve_language


def test_the_language_setting_wins_over_the_locale() -> None:
    locales = ("zh_CN.UTF-8", "C.UTF-8", "")
    assert [resolve_language("auto", locale) for locale in locales] == ["zh", "en", "en"]
    assert (resolve_language("en", "zh_CN"), resolve_language("zh", "C")) == ("en", "zh")
