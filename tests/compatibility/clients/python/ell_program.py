# client: ell
# registry: PyPI
# packages: ell-ai[all]==0.0.17
# door: chat
import ell
import openai
import scenarios
from PIL import Image


@ell.tool()
def add(a: int, b: int):
    """Add two numbers."""
    return str(a + b)


def converted(message):
    content = message["content"]
    if isinstance(content, str):
        return ell.Message(role=message["role"], content=content)
    return ell.user([content[0]["text"], Image.new("RGB", (64, 64), "red")])


def ask(messages, *, stream, tools, key):
    client = openai.OpenAI(base_url=scenarios.BASE_URL, api_key=key)
    given = [converted(message) for message in messages]

    @ell.complex(model=scenarios.MODEL, client=client, tools=[add] if tools else None)
    def program():
        return given

    return program().text


scenarios.chat(ask, without={"stream": "it returns whole messages"})
scenarios.end()
