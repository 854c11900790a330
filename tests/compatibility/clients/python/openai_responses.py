# client: openai (Python)
# registry: PyPI
# packages: openai==3.57.0
# door: responses
import openai
import scenarios


def converted(message):
    if isinstance(message["content"], str):
        return message
    parts = []
    for part in message["content"]:
        if part["type"] == "text":
            parts.append({"type": "input_text", "text": part["text"]})
        else:
            parts.append({"type": "input_image", "image_url": part["image_url"]["url"]})
    return {"role": message["role"], "content": parts}


def ask(messages, *, stream, tools, key):
    client = openai.OpenAI(base_url=scenarios.BASE_URL, api_key=key)
    further = {"tools": [{"type": "function", **each["function"]} for each in tools or []]}
    if messages[0]["role"] == "system":
        further["instructions"] = messages[0]["content"]
        messages = messages[1:]
    given = {
        "model": scenarios.MODEL,
        "input": [converted(message) for message in messages],
        **(further if tools or "instructions" in further else {}),
    }
    if not stream:
        return client.responses.create(**given).output_text
    events = client.responses.create(stream=True, **given)
    return "".join(each.delta for each in events if each.type == "response.output_text.delta")


scenarios.chat(ask)
