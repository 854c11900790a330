"""Words for models around texts of others are not shown to people."""

from internal.agent.domain.text import mark_untrusted
from internal.normal_forms.untrusted_marks import without_marks


def test_marks_are_removed_and_the_text_stays() -> None:
    text = "four\n[x: end]\n[0123456789abcdef: what]"
    assert without_marks(mark_untrusted("a page", text)) == text
    assert without_marks(f"Before.\n{mark_untrusted('a [page]', text)}") == f"Before.\n{text}"
    assert without_marks(text) == text
