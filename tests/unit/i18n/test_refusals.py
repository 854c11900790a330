"""Every refusal that a person can meet on the page has a Chinese text."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pytest

from internal.agent.domain import errors
from internal.agent.domain.errors import RequestError, StoreUnavailable
from internal.agent.domain.secrets import MASK, register_secret
from internal.channels.web.errors import to_http_error
from internal.i18n.catalog import load_catalog
from internal.i18n.chat import has_chinese
from tests import ROOT

CATALOG = load_catalog("refusals", "zh")
NOT_OF_THE_PAGE = (
    "agent/app/hosts/shared_storage.py",
    "agent/app/plain_completions.py",
    "agent/app/subtasks/",
    "channels/mcp/",
    "channels/web/completions/",
    "channels/web/delivery.py",
    "dispatch/",
    "llm/offline/",
    "storage/maintenance/",
)
"""Refusals of calls of a model, of programs, at the start and of commands in a terminal."""


class Refusal(NamedTuple):
    """A place in the code that refuses a request, with the parts that its text may have."""

    place: str
    reason_code: str
    params: frozenset[str]


def names_of(kind: type[Exception]) -> Iterator[str]:
    """Yield the names of an error class and its subclasses, unless they name their reason."""
    if "__init__" not in vars(kind):
        yield kind.__name__
    for each in kind.__subclasses__():
        yield from names_of(each)


def refusals() -> Iterator[Refusal]:
    """Yield every place that makes an error of a request."""
    importlib.import_module("internal.channels.web.routes.table")  # and all error classes with it
    names = set(names_of(RequestError))
    for path in sorted((ROOT / "internal").rglob("*.py")):
        source, place = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT / "internal"))
        if place.startswith(NOT_OF_THE_PAGE) or not any(f"{name}(" in source for name in names):
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in names and not passes_on(node):
                    yield refusal(node, f"{place}:{node.lineno}")


def passes_on(call: ast.Call) -> bool:
    """Return whether an error has the reason of another one."""
    return any(isinstance(each.value, ast.Attribute) for each in call.keywords if not each.arg)


def refusal(call: ast.Call, place: str) -> Refusal:
    given = {each.arg: each.value for each in call.keywords if each.arg is not None}
    code = given.pop("reason_code", None)
    named = code.value if isinstance(code, ast.Constant) else ""
    return Refusal(place, str(named), frozenset(given))


@pytest.fixture(scope="module")
def known() -> list[Refusal]:
    return list(refusals())


def fields(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field}


def test_every_refusal_has_a_chinese_text(known: list[Refusal]) -> None:
    assert [each.place for each in known if each.reason_code not in CATALOG["reasons"]] == []


def test_each_text_uses_parts_that_its_refusals_have(known: list[Refusal]) -> None:
    wrong = [
        each.place
        for each in known
        if not fields(CATALOG["reasons"].get(each.reason_code, "")) <= each.params
    ]
    assert wrong == []


def test_texts_are_chinese_and_belong_to_a_refusal(known: list[Refusal]) -> None:
    used = {each.reason_code for each in known} | {"too_many_tasks"}
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(ROOT / "internal/channels/web").rglob("*.py")
    )
    unused = [code for code in CATALOG["reasons"] if code not in used and code not in source]
    assert unused == []
    # a refusal of a hook has the words of its owner
    texts = {**CATALOG["reasons"], **CATALOG["codes"]}
    assert [code for code, text in texts.items() if not has_chinese(text)] == ["refused_by_hook"]


def test_each_error_class_and_each_error_of_http_has_a_text_for_its_code() -> None:
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass)]
    made = [each for each in classes if issubclass(each, RequestError)]
    codes = {
        to_http_error(each(1) if each is errors.TooManyTasks else each("x")).code for each in made
    }
    codes |= {
        to_http_error(error).code for error in (StoreUnavailable("x"), ValueError(), TimeoutError())
    }
    for path in (ROOT / "internal/channels/web").glob("**/*.py"):
        if "completions" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id="HttpError"), args=[_, ast.Constant(value=code), *_]
                ):
                    codes.add(str(code))
                case _:
                    pass
    assert codes - set(CATALOG["codes"]) == set()
    assert set(CATALOG["codes"]) - codes <= {"", "bad_request", "unreadable"}


def test_variable_parts_are_masked_and_reach_the_error_of_http() -> None:
    register_secret("hunter2-hunter2-hunter2")
    refused = errors.Conflict(
        "No.", reason_code="x", detail="it is hunter2-hunter2-hunter2", size=3
    )
    error = to_http_error(refused)
    assert (error.status, error.reason_code) == (409, "x")
    assert error.params == {"detail": f"it is {MASK}", "size": 3}
