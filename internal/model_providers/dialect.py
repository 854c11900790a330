"""Dialects: the form of requests that a server takes, from the registry and from its refusals."""

from typing import Literal

import msgspec

UNSEEN_PICTURE = "[a picture: this model cannot see pictures]"
"""Stands in place of a picture for a model that cannot see it."""

CallIdForm = Literal["any", "nine", "functions"]
"""`nine`: exactly nine letters and digits, as Mistral and the templates of its models take them.
`functions`: `functions.NAME:NUMBER`, which Kimi K2 was trained with."""


class Dialect(msgspec.Struct, frozen=True):
    """The form of requests to one model of one server.

    A registry entry gives the known form of a provider; a lesson changes it. Both encoders follow
    it.

    Args:
        limit_field: the name of the output limit in Chat Completions.
        count_tokens: ask for token counts.
        temperature: send a temperature.
        resend_reasoning: send earlier reasoning back with the tool calls it led to.
        resend_opaque: send opaque fields back to the model family that sent them.
        reasoning_in_content: replies begin with reasoning that only a closing tag ends. An opening
            tag is always seen; this is learned from replies, in both directions.
        effort: is sent as `reasoning_effort` together with tools.
        pictures: the model sees pictures; without, a line stands in their place.
        picture_results: tool results may contain pictures.
        documents: the model reads documents.
        audio: the model hears audio.
        tools: the model can be offered tools.
        tool_choice: a request may say that no tool may be called; without, it offers none then.
        withheld_tools: names of tools that the server refuses.
        max_tools: the most tools of a request; None is unlimited.
        max_tool_name: the longest name of a tool, in characters.
        call_ids: the form of the ids of calls.
        missing_signature: is sent as the thought signature of calls that another model wrote.
        text_with_calls: a message of the model may have text beside its calls.
        user_after_results: a `user` message may follow a `tool` message.
        system_role: the first message may have the role `system`.
        extra_fields: more fields of the body, such as the amount of thinking, as the JSON text of
            an object; "" for none. They are dropped when the server refuses them.
        max_body_bytes: the largest body; None is unlimited. A proxy on the way may set it.
        max_output_tokens: the largest output limit that is taken; None is unknown.
    """

    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    count_tokens: bool = True
    temperature: bool = True
    resend_reasoning: bool = False
    resend_opaque: bool = True
    reasoning_in_content: bool = False
    effort: str | None = None
    pictures: bool = True
    picture_results: bool = True
    documents: bool = True
    audio: bool = True
    tools: bool = True
    tool_choice: bool = True
    withheld_tools: frozenset[str] = frozenset()
    max_tools: int | None = None
    max_tool_name: int = 64
    call_ids: CallIdForm = "any"
    missing_signature: str = ""
    text_with_calls: bool = True
    user_after_results: bool = True
    system_role: bool = True
    extra_fields: str = ""
    max_body_bytes: int | None = None
    max_output_tokens: int | None = None
