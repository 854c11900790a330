# client: openai (Python)
# registry: PyPI
# packages: openai==3.57.0
# door: chat
import openai
import scenarios


def ask(messages, *, stream, tools, key):
    client = openai.OpenAI(base_url=scenarios.BASE_URL, api_key=key)
    further = {"tools": tools} if tools else {}
    if not stream:
        reply = client.chat.completions.create(model=scenarios.MODEL, messages=messages, **further)
        return reply.choices[0].message.content
    chunks = client.chat.completions.create(
        model=scenarios.MODEL, messages=messages, stream=True, **further
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def models():
    client = openai.OpenAI(base_url=scenarios.BASE_URL, api_key=scenarios.KEY)
    client.models.retrieve(scenarios.MODEL)
    return [model.id for model in client.models.list()]


scenarios.chat(ask, models=models)
