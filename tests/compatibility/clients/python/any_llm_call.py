# client: any-llm
# registry: PyPI
# packages: any-llm-sdk[openai]==1.40.2
# door: chat responses
import any_llm
import scenarios


def ask(messages, *, stream, tools, key):
    given = {
        "model": scenarios.MODEL,
        "provider": "openai",
        "api_base": scenarios.BASE_URL,
        "api_key": key,
        "stream": stream,
    }
    if scenarios.DOOR == "responses":
        content = messages[-1]["content"]
        if not isinstance(content, str):
            parts = [
                {"type": "input_text", "text": content[0]["text"]},
                {"type": "input_image", "image_url": content[1]["image_url"]["url"]},
            ]
            messages = [{"role": "user", "content": parts}]
        further = {"tools": [{"type": "function", **each["function"]} for each in tools or []]}
        reply = any_llm.responses(input_data=messages, **given, **(further if tools else {}))
        if not stream:
            return reply.output_text
        return "".join(each.delta for each in reply if each.type == "response.output_text.delta")
    further = {"tools": tools} if tools else {}
    reply = any_llm.completion(messages=messages, **given, **further)
    if not stream:
        return reply.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)


def models():
    found = any_llm.list_models("openai", api_key=scenarios.KEY, api_base=scenarios.BASE_URL)
    return [model.id for model in found]


scenarios.chat(ask, models=models)
scenarios.end()
