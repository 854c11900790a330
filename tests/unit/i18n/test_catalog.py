"""Every catalogue has the same keys and placeholders in each language, and the code uses them."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from internal.i18n import catalog
from internal.i18n.catalog import CATALOGS, MessageCatalog, find_mismatches, load_catalog
from internal.i18n.language import LANGUAGES
from tests import ROOT

SOURCES = ("internal/audio", "internal/channels", "internal/i18n", "cmd")


@pytest.fixture(scope="module")
def nodes() -> list[ast.AST]:
    """The syntax of all code with messages."""
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    return [node for path in files for node in ast.walk(ast.parse(path.read_text()))]


def literals(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield every string of the code; of an f-string its constant beginning and a `*`."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Attribute(attr=name):
                yield name
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                yield f"{text}*"
            case _:
                pass


@pytest.mark.parametrize("name", CATALOGS)
def test_languages_have_the_same_keys_and_placeholders(name: str) -> None:
    assert find_mismatches(name) == []


def test_a_missing_key_and_another_placeholder_are_found(tmp_path: Path) -> None:
    for language, messages in (("en", {"a": "{x}", "b": ""}), ("zh", {"a": "{y}", "c": ""})):
        text = json.dumps({"messages": messages})
        (tmp_path / f"demo.{language}.json").write_text(text, encoding="utf-8")
    assert find_mismatches("demo", str(tmp_path)) == [
        "demo.zh: messages.b is missing",
        "demo.en: messages.c is missing",
        "demo.zh: messages.a has other placeholders",
    ]


def test_every_catalogue_file_is_listed() -> None:
    folder = Path(catalog.__file__).parent
    expected = {f"{name}.{language}.json" for name in CATALOGS for language in LANGUAGES}
    # the English sentences of these two are those of the errors
    expected |= {"file_reasons.zh.json", "refusals.zh.json"}
    expected.add("commands.json")  # a section for each command, with all languages
    assert {path.name for path in folder.glob("*.json")} == expected


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    assert sorted(keys) == sorted(set(keys))
    return dict(pairs)


@pytest.mark.parametrize("name", CATALOGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_message_is_given_twice(name: str, language: str) -> None:
    file = Path(catalog.__file__).with_name(f"{name}.{language}.json")
    json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=unique)


def test_placeholders_are_filled_in_and_an_unknown_key_fails() -> None:
    messages = MessageCatalog("chat", "en")
    assert messages("progress_seconds", seconds=3) == "3 s"
    assert "progress_seconds" in messages
    assert "no_such_message" not in messages
    with pytest.raises(KeyError):
        messages("no_such_message")


def test_the_code_uses_every_message(nodes: list[ast.AST]) -> None:
    used = set(literals(nodes))
    prefixes = tuple(text[:-1] for text in used if text.endswith("_*"))
    unused = [
        (name, key)
        for name in CATALOGS
        for key in load_catalog(name, "en")["messages"]
        if key not in used and not key.startswith(prefixes)
    ]
    assert unused == []


def test_every_message_that_the_code_names_exists(nodes: list[ast.AST]) -> None:
    known = {key for name in CATALOGS for key in load_catalog(name, "en")["messages"]}
    named = {
        argument.value
        for node in nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2].lstrip("_") in {"phrases", "words"}
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert named - known - set(LANGUAGES) == set()
