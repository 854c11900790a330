"""The names and the sentences of the permission modes, in every language and on the page."""

import re

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.i18n.catalog import MessageCatalog
from internal.i18n.language import LANGUAGES, Language
from tests import ROOT


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_mode_has_the_name_of_the_page_and_a_sentence(language: Language) -> None:
    modes = MessageCatalog("modes", language)
    page = (ROOT / f"web/src/i18n/{language}.ts").read_text("utf-8")
    [listed] = re.findall(r"\bmodes: \{(.*?)\}", page)
    assert dict(re.findall(r"(\w+): '(.*?)'", listed)) == {
        mode.value: modes(f"name_{mode}") for mode in Mode
    }
    assert len({modes(mode) for mode in Mode}) == len(Mode)


def test_the_sentence_about_edits_names_the_files_that_are_asked_about() -> None:
    sentence = MessageCatalog("modes", "en")(Mode.EDIT)
    assert "asks before commands and before files that configure programs" in sentence
