"""Lists of models, also hostile ones."""

import json

import pytest

from internal.llm.addresses.model_list import (
    MAX_MODELS,
    doubt_listed_model,
    parse_models,
    parse_windows,
)


@pytest.mark.parametrize(
    "content",
    [
        {"object": "list", "data": [{"id": "a"}, {"id": "b"}]},
        {"data": [{"type": "model", "id": "a"}, {"id": "b"}], "has_more": False},
        {"models": [{"name": "a", "model": "a"}, {"name": "b"}]},
        {"data": [{"id": "models/a"}, {"id": "models/b"}, {"id": "a"}]},
        [{"id": "a"}, {"id": "b"}],
        ["a", "b"],
        {"data": [{"id": "a"}, {"id": 7}, None, {"id": "x\x1b[31m"}, {"id": "b"}, {"id": " "}]},
        {"data": [{"id": "a"}, {"id": "b"}, {"id": "\u202ered"}, {"id": "long" * 100}]},
    ],
)
def test_names_are_read_in_every_form(content: object) -> None:
    assert parse_models(json.dumps(content).encode()) == ("a", "b")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b'{"data": {"id": "a"}}',
        b'{"error": "no"}',
        b"[" * 100_000,
        b'{"data": [{"id": "a"},',
        b'[{"title": 1}]',
        b"\xff",
    ],
)
def test_what_is_no_list_is_none(body: bytes) -> None:
    assert parse_models(body) is None


def test_a_long_list_is_cut_and_an_empty_one_is_empty() -> None:
    names = [{"id": f"m{n}"} for n in range(MAX_MODELS * 3)]
    assert len(parse_models(json.dumps(names).encode()) or ()) == MAX_MODELS
    assert parse_models(b'{"data": []}') == ()


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("claude-x", ("claude-x-20260101",)),
        ("claude-x-20260101", ("claude-x",)),
        ("gpt-oss", ("gpt-oss:latest",)),
        ("m", ("m",)),
        ("ep-20260101-abc", ("doubao",)),
        ("anything", ()),
    ],
)
def test_a_model_with_a_date_or_a_tag_is_not_doubted(model: str, listed: tuple[str, ...]) -> None:
    assert doubt_listed_model(model, listed, "Acme") == ""


def test_a_model_that_is_not_listed_is_doubted_with_the_nearest_names() -> None:
    listed = ("qwen3-max", "qwen3-plus", "embedding-1")
    said = doubt_listed_model("qwen3-mx", listed, "Acme")
    assert said == "Acme does not list the model qwen3-mx; near it are qwen3-max, qwen3-plus."
    assert doubt_listed_model("zzz", listed, "Acme") == "Acme does not list the model zzz."


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 32_768}, 32_768),
        ({"context_length": 131_072}, 131_072),
        ({"max_context_length": 131_072, "loaded_context_length": 4_096}, 4_096),
        ({"meta": {"n_ctx_train": 8_192}}, 8_192),
        ({"meta": {"n_ctx_train": 8_192, "n_ctx": 2_048}}, 2_048),
        ({"max_model_len": "32768"}, None),
        ({"max_model_len": -1, "meta": 3}, None),
        ({"max_model_len": True}, None),
    ],
)
def test_windows_are_read_as_servers_list_them(
    entry: dict[str, object], window: int | None
) -> None:
    body = json.dumps({"data": [{"id": "m", **entry}]}).encode()
    assert parse_windows(body).get("m") == window
    assert parse_windows(b"<html>") == {}
