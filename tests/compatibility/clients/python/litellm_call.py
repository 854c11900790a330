# client: litellm
# registry: PyPI
# packages: litellm==1.110.2
# door: chat responses
import litellm
import scenarios

litellm.telemetry = False


def ask(messages, *, stream, tools, key):
    given = {
        "model": f"openai/{scenarios.MODEL}",
        "api_base": scenarios.BASE_URL,
        "api_key": key,
        "stream": stream,
    }
    if scenarios.DOOR == "chat":
        further = {"tools": tools} if tools else {}
        reply = litellm.completion(messages=messages, **given, **further)
        if not stream:
            return reply.choices[0].message.content
        return "".join(chunk.choices[0].delta.content or "" for chunk in reply)
    content = messages[-1]["content"]
    if not isinstance(content, str):
        parts = [
            {"type": "input_text", "text": content[0]["text"]},
            {"type": "input_image", "image_url": content[1]["image_url"]["url"]},
        ]
        messages = [{"role": "user", "content": parts}]
    further = {"tools": [{"type": "function", **each["function"]} for each in tools or []]}
    reply = litellm.responses(input=messages, **given, **(further if tools else {}))
    if not stream:
        return "".join(
            part.text for item in reply.output if item.type == "message" for part in item.content
        )
    return "".join(each.delta for each in reply if each.type == "response.output_text.delta")


scenarios.chat(ask)
scenarios.end()
