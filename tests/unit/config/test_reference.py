"""The settings reference matches the settings models."""

import re
from pathlib import Path

from internal.config.loader import load
from internal.config.reference import GENERATED, insert_table, yaml_text
from internal.config.setting_keys import KEYS
from tests import ROOT

FILE = ROOT / "configs" / "larkspur.yaml"
REMEDY = "run: make generate"


def test_the_file_of_all_keys_is_fresh() -> None:
    assert FILE.read_text() == yaml_text(), REMEDY


def test_the_file_of_all_keys_contains_the_defaults(home: Path) -> None:
    environ = {"LARKSPUR_HOME": str(home)}
    assert load(config=FILE, environ=environ).settings == load(environ=environ).settings


def test_the_generated_tables_in_the_docs_are_fresh() -> None:
    for path, name, table in GENERATED:
        text = (ROOT / path).read_text()
        assert table() in text, REMEDY
        assert text == insert_table(text, name, table()), REMEDY


def test_the_chinese_tables_of_providers_name_the_same() -> None:
    named = []
    for page in ("models.md", "models.zh.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for name in ("providers", "abilities"):
            table = text.partition(f"<!-- {name}: begin -->")[2].partition("<!--")[0]
            rows = [
                [re.findall("`.*?`", cell) for cell in row.split("|")] for row in table.split("\n")
            ]
            named.append([row for row in rows if any(row)])
    assert named[:2] == named[2:]


def test_every_key_is_explained_in_one_line() -> None:
    said = {key: field.description or "" for key, field in KEYS.items()}
    assert {key: line for key, line in said.items() if not line or "\n" in line} == {}
    assert all(line.endswith(".") for line in said.values())
