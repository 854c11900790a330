"""The fields of `POST /v1/responses`, and the treatment of each."""

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.fields import (
    CALL_LIMITS,
    MODEL,
    MODERATION,
    NO_TOKENS,
    PROMPT_CACHE,
    SAFETY_IDENTIFIER,
    SCHEMA,
    STREAM,
    TEMPERATURE,
    USER,
    Field,
    FieldTable,
)

INCLUDABLE = frozenset(
    {
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
"""Accepted values of `include` without effect: parts of items that a response does not have."""

RESPONSE_FIELDS = FieldTable(
    (
        MODEL,
        Field(("input",), "honoured", "a text, or items, see above"),
        Field(("instructions",), "honoured", "as messages of the role `system`"),
        STREAM,
        Field(
            ("previous_response_id",), "honoured", "continues the session of that response of yours"
        ),
        Field(
            ("tools", "tool_choice"),
            "without effect",
            "the agent uses the tools of the gateway; a choice that demands another one is refused",
        ),
        CALL_LIMITS,
        Field(
            ("text.format",),
            "refused",
            SCHEMA,
            ({"type": "text"},),
        ),
        Field(
            ("include",),
            "without effect",
            "a response has no such items; `message.output_text.logprobs` is refused",
        ),
        Field(("background",), "refused", "follow a task at `GET /api/tasks/{task_id}`", (False,)),
        Field(("background_options", "access_programs"), "without effect", "they are OpenAI's own"),
        Field(
            ("conversation",),
            "refused",
            "send `previous_response_id` or the header `x-larkspur-session`",
        ),
        Field(("prompt",), "refused", "there are no stored prompts"),
        Field(("top_logprobs",), "refused", NO_TOKENS, (0,)),
        MODERATION,
        TEMPERATURE,
        Field(
            ("max_output_tokens",),
            "without effect",
            "a run has the limits of the [settings](settings.md); honoured by `larkspur-plain`",
        ),
        Field(
            ("top_p", "reasoning", "text.verbosity"),
            "without effect",
            "a run thinks and writes as the model of the settings does",
        ),
        Field(
            ("truncation", "context_management", "image"),
            "without effect",
            "the gateway shortens a conversation that is too long for the model",
        ),
        Field(
            ("store",),
            "without effect",
            "each run is stored with its session; `larkspur-plain` stores nothing",
        ),
        Field(("metadata",), "without effect", "it is returned with the response, and not stored"),
        PROMPT_CACHE,
        Field(
            ("service_tier", "stream_options"),
            "without effect",
            "they are about the speed and the price at a provider",
        ),
        USER,
        SAFETY_IDENTIFIER,
    ),
    "such as `client_metadata` of Codex",
)
"""The fields of `POST /v1/responses`."""


def check_included(include: tuple[str, ...]) -> None:
    """Check the requested additional parts of a response.

    Raises:
        InvalidRequest: a part is not supported.
    """
    for name in include:
        if name not in INCLUDABLE:
            raise InvalidRequest(f"include: {name[:80]} is not supported.")
