"""The tables of fields in the docs match those in the code."""

from internal.channels.web.completions.field_reference import PAGE, TABLES
from internal.config.reference import insert_table
from tests import ROOT


def test_the_tables_in_the_docs_are_fresh() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for name, table in TABLES:
        assert table.markdown() in text, "run: make generate"
        assert text == insert_table(text, name, table.markdown()), "run: make generate"
