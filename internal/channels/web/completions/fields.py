"""The fields of requests of other APIs, and the treatment of each by the gateway.

The same table validates requests and is shown in docs/http.md, so that no field is silently
ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from internal.agent.domain.errors import InvalidRequest

Verdict = Literal["honoured", "without effect", "refused"]

SCHEMA = "answers with a schema are given by `larkspur -p --json-schema`"
_ONE_ANSWER = "a run has one answer"
NO_TOKENS = "a run has no probabilities of tokens"


class Field(msgspec.Struct, frozen=True):
    """Fields of a request with the same verdict.

    Attributes:
        names: such as `stop`, or `stream_options.include_usage` for a field inside of another one.
        note: the reason, as a part of a sentence: also the error of a refused field says it.
        neutral: values of a refused field that ask for nothing, and are accepted, as null is.
    """

    names: tuple[str, ...]
    verdict: Verdict
    note: str
    neutral: tuple[Any, ...] = ()


class FieldTable(msgspec.Struct, frozen=True):
    """All fields of a request. `others` describes the treatment of unlisted fields."""

    fields: tuple[Field, ...]
    others: str

    def check(self, body: bytes) -> None:
        """Check a JSON object that was decoded before.

        Raises:
            InvalidRequest: it has a refused field; the message names it and the reason.
        """
        given = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        for field in self.fields:
            if field.verdict != "refused":
                continue
            for name in field.names:
                value = _value(given, name.split("."))
                if value is not None and value not in field.neutral:
                    raise InvalidRequest(f"{name} is not supported: {field.note}.")

    def markdown(self) -> str:
        """Return the table as docs show it."""
        rows = [
            f"| {_listed(each.names)} | {_verdict(each)} | {each.note} |" for each in self.fields
        ]
        head = ["| field | verdict | |", "|---|---|---|"]
        return "\n".join([*head, *rows, f"| any other field | without effect | {self.others} |"])


def _value(given: Mapping[str, msgspec.Raw], path: list[str]) -> Any:
    """Return the value of a field without the members of it that are null."""
    raw = given.get(path[0])
    value = None if raw is None else msgspec.json.decode(raw)
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if each is not None}
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _verdict(field: Field) -> str:
    if not field.neutral:
        return field.verdict
    return f"{field.verdict}, except {_listed(_json(value) for value in field.neutral)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# fields that both APIs have
MODEL = Field(("model",), "honoured", "`larkspur` or a name of `GET /v1/models`")
STREAM = Field(("stream",), "honoured", "the text as it is written")
CALL_LIMITS = Field(
    ("parallel_tool_calls", "max_tool_calls"),
    "without effect",
    "the agent decides how it uses its tools",
)
MODERATION = Field(("moderation",), "refused", "nothing is moderated")
TEMPERATURE = Field(
    ("temperature",),
    "without effect",
    "the gateway chooses how the model of a run samples; honoured by `larkspur-plain`",
)
PROMPT_CACHE = Field(
    ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    "without effect",
    "the gateway decides what a provider caches",
)
USER = Field(
    ("user",),
    "honoured",
    "no conversation of another user is continued; the token says who asks",
)
SAFETY_IDENTIFIER = Field(("safety_identifier",), "without effect", "the token says who asks")

CHAT_COMPLETION_FIELDS = FieldTable(
    (
        MODEL,
        Field(
            ("messages",),
            "honoured",
            "the conversation; text, and files with their data",
        ),
        STREAM,
        Field(
            ("stream_options.include_usage",), "honoured", "a last chunk with the tokens of the run"
        ),
        Field(
            ("stream_options.include_obfuscation", "stream_options.continuous_usage_stats"),
            "without effect",
            "chunks are not padded, and the usage comes at the end",
        ),
        Field(
            ("tools", "tool_choice", "functions", "function_call"),
            "without effect",
            "the agent uses the tools of the gateway; a choice that demands another one is refused",
        ),
        CALL_LIMITS,
        Field(("response_format",), "refused", SCHEMA, ({"type": "text"},)),
        Field(("format", "json_schema", "structured_outputs"), "refused", SCHEMA, ("", {})),
        Field(
            ("grammar", "guided_json", "guided_regex", "guided_choice", "guided_grammar"),
            "refused",
            SCHEMA,
            ("", {}, []),
        ),
        Field(("n", "best_of"), "refused", _ONE_ANSWER, (1,)),
        Field(("use_beam_search",), "refused", _ONE_ANSWER, (False,)),
        Field(("logprobs", "top_logprobs", "prompt_logprobs"), "refused", NO_TOKENS, (False, 0)),
        Field(
            ("stop",),
            "refused",
            "a run ends when it is done, not at a word of its answer",
            ("", []),
        ),
        Field(
            ("logit_bias",),
            "refused",
            "tokens of a run can be neither excluded nor preferred",
            ({},),
        ),
        Field(("modalities",), "refused", "answers are text", (["text"], [])),
        Field(("audio",), "refused", "answers are text"),
        Field(
            ("web_search_options",),
            "refused",
            "the agent searches with its own tools, whenever the task needs it",
        ),
        MODERATION,
        Field(
            ("documents",),
            "refused",
            "documents are attached to a task, see `POST /api/tasks`",
            ([],),
        ),
        Field(
            ("echo", "continue_final_message"),
            "refused",
            "the answer is a message of its own",
            (False,),
        ),
        TEMPERATURE,
        Field(
            ("top_p", "top_k", "min_p", "seed"),
            "without effect",
            "the gateway chooses how a model samples",
        ),
        Field(
            (
                "presence_penalty",
                "frequency_penalty",
                "repetition_penalty",
                "repeat_penalty",
            ),
            "without effect",
            "the gateway chooses how the model of a run samples",
        ),
        Field(
            ("max_tokens", "max_completion_tokens"),
            "without effect",
            "a run has the limits of the [settings](settings.md); honoured by `larkspur-plain`",
        ),
        Field(
            ("num_predict", "num_ctx", "options"),
            "without effect",
            "a run has the limits of the [settings](settings.md)",
        ),
        Field(
            ("reasoning_effort", "reasoning", "thinking", "think", "verbosity"),
            "without effect",
            "a run thinks and writes as the model of the settings does",
        ),
        Field(
            ("prediction", "service_tier", "keep_alive"),
            "without effect",
            "they are about the speed and the price at a provider",
        ),
        PROMPT_CACHE,
        Field(
            ("store", "metadata"),
            "without effect",
            "each run is stored, with its session, and can be read at the other endpoints",
        ),
        USER,
        SAFETY_IDENTIFIER,
    ),
    "such as those that Open WebUI, LiteLLM and servers of models add",
)
"""The fields of `POST /v1/chat/completions`."""
