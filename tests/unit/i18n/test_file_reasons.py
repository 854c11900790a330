"""Every reason why a file cannot be used has a translation."""

import ast
from collections.abc import Iterator

import pytest

from internal.i18n.chat import has_chinese
from internal.i18n.file_reasons import translate_problem
from tests import ROOT

ERRORS = {"DocumentUnreadable", "RemoteFileUnavailable", "AudioNotTranscribed"}
SOURCES = ("internal/documents", "internal/audio", "internal/agent/app/files")
LARK = "internal/channels/lark/content/files.py"


def sentence(node: ast.expr) -> str:
    """Return the text of an expression with samples as its variable parts, "" if it is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(each.value) if isinstance(each, ast.Constant) else "7.5" for each in values
            )
        case _:
            return ""


def reasons() -> Iterator[str]:
    """Yield the sentences in errors, in module constants and in functions that return them."""
    paths = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    for path in [*paths, ROOT / LARK]:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in ERRORS:
                    yield sentence(first)
                case ast.FunctionDef(name="_refusal" | "_beyond" | "_too_slow"):
                    yield from (
                        sentence(each.value)
                        for each in ast.walk(node)
                        if isinstance(each, ast.Return) and each.value is not None
                    )
                case ast.Assign(targets=[ast.Name(id="_REASONS")], value=ast.Dict(values=values)):
                    yield from map(sentence, values)
                case ast.Assign(targets=[ast.Name(id="_DAMAGED" | "_CRASHED")], value=value):
                    yield sentence(value)
                case _:
                    pass


KNOWN = sorted({text for text in reasons() if text})


def test_the_reasons_are_found() -> None:
    assert len(KNOWN) > 40


@pytest.mark.parametrize("reason", KNOWN)
def test_every_reason_is_translated_with_the_name_of_its_file(reason: str) -> None:
    translated = translate_problem(f"a: b.pdf: {reason}", "zh")
    assert translated.startswith("a: b.pdf\uff1a")
    assert has_chinese(translated.removeprefix("a: b.pdf\uff1a"))
    assert has_chinese(translate_problem(reason, "zh"))
    assert translate_problem(reason, "en") == reason


def test_parts_are_kept_and_an_unknown_reason_stays() -> None:
    said = translate_problem("x.pdf: Page 1,200 of the PDF is damaged.", "zh")
    assert said == "x.pdf\uff1aPDF 第 1,200 页已损坏。"
    assert translate_problem("x.pdf: {0} something new.", "zh") == "x.pdf: {0} something new."
