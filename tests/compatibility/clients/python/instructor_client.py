# client: instructor
# registry: PyPI
# packages: instructor==1.17.0
# door: chat
# Its purpose is an answer with a schema: in JSON mode the prompt and `response_format` ask for it.
import instructor
import openai
import scenarios
from pydantic import BaseModel


class Answer(BaseModel):
    text: str


def ask(messages, *, stream, tools, key):
    client = instructor.from_openai(
        openai.OpenAI(base_url=scenarios.BASE_URL, api_key=key), mode=instructor.Mode.TOOLS
    )
    if tools:
        found = client.chat.completions.create(
            model=scenarios.MODEL, messages=messages, response_model=Answer, max_retries=1
        )
        return found.text
    reply = client.chat.completions.create(
        model=scenarios.MODEL, messages=messages, response_model=None, stream=stream
    )
    if not stream:
        return reply.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)


scenarios.chat(ask)
