"""The fields of requests of other APIs."""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.chat_completions import ChatCompletionRequest
from internal.channels.web.completions.documented_fields import DOCUMENTED
from internal.channels.web.completions.fields import CHAT_COMPLETION_FIELDS, FieldTable
from internal.channels.web.completions.response_fields import RESPONSE_FIELDS
from internal.channels.web.completions.responses import CreateResponseRequest
from internal.channels.web.schemas import RequestModel
from internal.config.reference import insert_table
from tests import ROOT

SENT_BY_CLIENTS: dict[str, Any] = {
    "model": "larkspur",
    "messages": [],
    "n": 1,
    "stop": None,
    "logprobs": False,
    "top_logprobs": 0,
    "logit_bias": {},
    "tools": [{"type": "function"}],
    "functions": [{"name": "f"}],
    "function_call": "auto",
    "modalities": ["text"],
    "response_format": {"type": "text", "json_schema": None},
    "temperature": 0.2,
    "max_tokens": 100,
    "reasoning_effort": "low",
    "stream_options": {"include_usage": True},
    "metadata": {"chat_id": "1"},
    "chat_id": "a field of Open WebUI",
    "features": {"web_search": False},
}
REFUSED: dict[str, Any] = {
    "response_format": {"type": "json_object"},
    "guided_json": {"type": "object"},
    "format": "json",
    "n": 2,
    "stop": ["\n"],
    "logprobs": True,
    "top_logprobs": 5,
    "logit_bias": {"50256": -100},
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "wav"},
    "web_search_options": {},
    "moderation": {"model": "omni-moderation-latest"},
}


def test_what_clients_always_send_is_accepted() -> None:
    CHAT_COMPLETION_FIELDS.check(msgspec.json.encode(SENT_BY_CLIENTS))
    CHAT_COMPLETION_FIELDS.check(msgspec.json.encode(dict.fromkeys(REFUSED)))


@pytest.mark.parametrize("name", REFUSED)
def test_a_field_that_would_change_the_answer_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{name} is not supported: "):
        CHAT_COMPLETION_FIELDS.check(msgspec.json.encode({**SENT_BY_CLIENTS, name: REFUSED[name]}))


@pytest.mark.parametrize(
    ("source", "prefix", "table", "request_model"),
    [
        (
            "types/chat/completion_create_params.py",
            "CompletionCreateParams",
            CHAT_COMPLETION_FIELDS,
            ChatCompletionRequest,
        ),
        (
            "types/responses/response_create_params.py",
            "ResponseCreateParams",
            RESPONSE_FIELDS,
            CreateResponseRequest,
        ),
    ],
)
def test_every_field_of_openai_has_a_verdict(
    source: str, prefix: str, table: FieldTable, request_model: type[RequestModel]
) -> None:
    package = find_spec("openai")
    assert package is not None
    assert package.origin is not None
    text = (Path(package.origin).parent / source).read_text(encoding="utf-8")
    classes = [
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.ClassDef) and each.name.startswith(prefix)
    ]
    declared = {
        each.target.id
        for part in classes
        for each in part.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    assert len(declared) > 25
    known = {name.partition(".")[0] for field in table.fields for name in field.names}
    assert declared <= known
    assert set(request_model.__struct_fields__) <= known


def test_the_tables_in_the_docs_are_fresh() -> None:
    text = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    for name, table in DOCUMENTED:
        assert table.markdown() in text, "run: make generate"
        assert text == insert_table(text, name, table.markdown()), "run: make generate"
