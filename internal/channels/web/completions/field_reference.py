"""The tables of fields in the docs."""

from pathlib import Path

from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS, FieldTable
from internal.config.reference import insert_table

TABLES: tuple[tuple[str, FieldTable], ...] = (("chat completion fields", CHAT_COMPLETION_FIELDS),)
"""The name of the marks of each table in `PAGE`, and the table."""
PAGE = "docs/http.md"


def main() -> None:
    """Write the tables in the checkout in the working directory."""
    page = Path(PAGE)
    text = page.read_text(encoding="utf-8")
    for name, table in TABLES:
        text = insert_table(text, name, table.markdown())
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
