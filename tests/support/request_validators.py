"""Validators of requests for the APIs of model providers, one per provider, as documented.

A validator takes the parsed body of a request. Where the server would answer 400, it raises
`Refusal` with the server's message. The rules shared by all servers of a wire format are in
`openai_server` and `anthropic_server`, which reject unknown fields.
"""

import copy
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.support import anthropic_server, openai_server
from tests.support.scripted_model import need

Body = Mapping[str, Any]
Validator = Callable[[Body], None]

_OPENAI_HEADERS = {"authorization": "Bearer key"}
_ANTHROPIC_HEADERS = {"x-api-key": "key", "anthropic-version": "2026-10-21"}
_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_FUNCTIONS_ID = re.compile(r"functions\.[\w-]+:\d+")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][\w.:-]{0,63}")


def check_openai(body: Body) -> None:
    """OpenAI. https://platform.openai.com/docs/api-reference/chat/create"""
    _check_chat(body)


def check_anthropic(body: Body) -> None:
    """Anthropic. https://platform.claude.com/docs/en/api/messages

    A signature must be one from `anthropic_server`.
    """
    anthropic_server.check_request(_ANTHROPIC_HEADERS, body)
    last = body["messages"][-1]
    need(
        last["role"] == "user",
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.",
    )


def check_unsigned_messages_api(body: Body) -> None:
    """DeepSeek's and Kimi's Messages API. https://api-docs.deepseek.com/guides/anthropic_api

    They sign nothing. A call comes back with its thinking:
    https://github.com/decolua/9router/issues/2397.
    """
    plain = copy.deepcopy(dict(body))
    for message in plain["messages"]:
        if message["role"] != "assistant":
            continue
        thoughts = [each for each in message["content"] if each["type"] == "thinking"]
        calls = [each for each in message["content"] if each["type"] == "tool_use"]
        need(
            thoughts or not calls,
            "The `content[].thinking` in the thinking mode must be passed back to the API.",
        )
        for thought in thoughts:
            need(thought["thinking"], "thinking: must not be empty")
            need(not thought["signature"], "signature: of another model")
            thought["signature"] = anthropic_server.signature_of(thought["thinking"])
    check_anthropic(plain)


def check_mistral(body: Body) -> None:
    """Mistral, and vLLM with the templates of its models.

    https://github.com/mistralai/mistral-common, `protocol/instruct/validator.py`; answers 3230 and
    3280 in https://github.com/onyx-dot-app/onyx/issues/6458 and
    https://github.com/vllm-project/vllm/issues/9019.
    """
    for call_id in _call_ids(body):
        need(
            _NINE.fullmatch(call_id),
            f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.",
        )
    roles = [message["role"] for message in body["messages"]]
    for before, after in pairwise(roles):
        need(
            (before, after) not in {("tool", "user"), ("user", "tool"), ("tool", "system")},
            f"Unexpected role '{after}' after role '{before}'",
        )
    need(roles[-1] in {"user", "tool"}, "Expected last role User or Tool (or Assistant with prefix")
    _check_chat(body)


def check_older_mistral(body: Body) -> None:
    """Mistral's models of 2024. https://github.com/langchain-ai/langchain/issues/21196"""
    for message in body["messages"]:
        need(
            not (message.get("content") and message.get("tool_calls")),
            "Assistant message must have either content or tool_calls, but not both.",
        )
    check_mistral(body)


def check_gemini(body: Body) -> None:
    """Gemini 3 at Google's Chat Completions address.

    https://ai.google.dev/gemini-api/docs/thought-signatures: the first call of each step since the
    last message of the person has its signature, or one of the two known to skip the check.
    """
    turn_start = max(at for at, each in enumerate(body["messages"]) if each["role"] == "user")
    for at, message in enumerate(body["messages"]):
        for number, call in enumerate(message.get("tool_calls") or ()):
            name = call["function"]["name"]
            need(_GEMINI_NAME.fullmatch(name), "Invalid function name. Must start with a letter")
            signature = call.get("extra_content", {}).get("google", {}).get("thought_signature", "")
            need(
                number or at < turn_start or signature,
                "Function call is missing a thought_signature in functionCall parts.",
            )
            known = not signature or signature.startswith(("gemini-", "skip_thought_signature_"))
            need(known, "Corrupted thought signature.")
    _check_chat(body, call_fields={"extra_content"}, message_fields={"extra_content"})


def check_openrouter(body: Body) -> None:
    """OpenRouter. https://openrouter.ai/docs/guides/best-practices/reasoning-tokens"""
    for message in body["messages"]:
        details = message.get("reasoning_details", [])
        need(
            all(each.get("format", "").startswith("openrouter-") for each in details),
            "reasoning_details: of another provider",
        )
    _check_chat(body, message_fields={"reasoning_details"})


def check_deepseek(body: Body) -> None:
    """DeepSeek's thinking mode. https://api-docs.deepseek.com/guides/thinking_mode

    Its models do not see: https://github.com/block/goose/issues/1914.
    """
    for at, message in enumerate(body["messages"]):
        need(
            not isinstance(message["content"], list),
            f"Failed to deserialize the JSON body into the target type: messages[{at}]: unknown "
            "variant `image_url`, expected `text`",
        )
        need(
            not message.get("tool_calls") or isinstance(message.get("reasoning_content"), str),
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        )
    _check_chat(body, message_fields={"reasoning_content"})


def check_kimi_k2(body: Body) -> None:
    """Kimi K2 with thinking, behind a server that lets it read the ids of calls.

    https://github.com/MoonshotAI/K2-Vendor-Verifier: other ids make the model write calls as text.
    """
    for call_id in _call_ids(body):
        need(_FUNCTIONS_ID.fullmatch(call_id), f"the model goes wrong after the id {call_id}")
    check_kimi(body)


def check_kimi(body: Body) -> None:
    """Kimi with thinking at Moonshot's address.

    https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model; "" is missing too:
    https://github.com/earendil-works/pi/issues/4251.
    """
    for at, message in enumerate(body["messages"]):
        content, calls = message["content"], message.get("tool_calls")
        role = message["role"]
        need(content or calls, f"message at position {at} with role '{role}' must not be empty")
        need(
            not calls or message.get("reasoning_content"),
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            f"at index {at}",
        )
    _check_chat(_with_short_ids(body), message_fields={"reasoning_content"})


def check_qwen(body: Body) -> None:
    """Qwen at DashScope. https://help.aliyun.com/zh/model-studio/error-code"""
    ids = [call["id"] for each in body["messages"] for call in each.get("tool_calls") or ()]
    need(len(ids) == len(set(ids)), "InternalError.Algo.InvalidParameter: repeated tool call id")
    need(
        body["messages"][-1]["role"] in {"user", "tool"},
        "InternalError.Algo.InvalidParameter: the last message must be of the role user or tool",
    )
    _check_chat(body)


def check_strict_template(body: Body) -> None:
    """Servers with templates such as Gemma's: no system role, no tools, strict alternation.

    https://github.com/suitenumerique/conversations/issues/197,
    https://github.com/google/adk-python/issues/1373.
    """
    need("tools" not in body, "auto tool choice requires --enable-auto-tool-choice")
    for at, message in enumerate(body["messages"]):
        need(message["role"] != "system", "System role not supported")
        need(
            message["role"] == ("assistant" if at % 2 else "user"),
            "Conversation roles must alternate user/assistant/user/assistant/...",
        )
    need(body["messages"][-1]["role"] == "user", "Cannot set `add_generation_prompt` to True")
    _check_chat(body)


def _call_ids(body: Body) -> Iterator[str]:
    """Yield the ids of calls and results."""
    for message in body["messages"]:
        yield from (call["id"] for call in message.get("tool_calls") or ())
        if message["role"] == "tool":
            yield message["tool_call_id"]


def _with_short_ids(body: Body) -> Body:
    """Return the body with ids that OpenAI would take as well: only their length may differ."""
    ids = {call_id: f"id-{n}" for n, call_id in enumerate(dict.fromkeys(_call_ids(body)))}
    plain = copy.deepcopy(dict(body))
    for message in plain["messages"]:
        for call in message.get("tool_calls") or ():
            call["id"] = ids[call["id"]]
        if message["role"] == "tool":
            message["tool_call_id"] = ids[message["tool_call_id"]]
    return plain


def _check_chat(
    body: Body,
    *,
    call_fields: Collection[str] = (),
    message_fields: Collection[str] = (),
) -> None:
    """Apply the checks common to all servers of Chat Completions, and reject unknown fields."""
    plain = copy.deepcopy(dict(body))
    for message in plain["messages"]:
        for name in message_fields if message["role"] == "assistant" else ():
            message.pop(name, None)
        for call in message.get("tool_calls") or ():
            for name in call_fields:
                call.pop(name, None)
    openai_server.check_request(_OPENAI_HEADERS, plain, openai_server.Manners())
