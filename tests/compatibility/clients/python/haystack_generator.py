# client: haystack-ai
# registry: PyPI
# packages: haystack-ai==3.4.1
# door: chat
import scenarios
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent
from haystack.tools import Tool
from haystack.utils import Secret

ADD = Tool(
    name="add",
    description="Adds two numbers.",
    parameters=scenarios.TOOL["function"]["parameters"],
    function=lambda a, b: a + b,
)


def converted(message):
    content = message["content"]
    match message["role"]:
        case "system":
            return ChatMessage.from_system(content)
        case "assistant":
            return ChatMessage.from_assistant(content)
        case _ if isinstance(content, str):
            return ChatMessage.from_user(content)
    image = ImageContent(
        base64_image=content[1]["image_url"]["url"].partition(",")[2], mime_type="image/png"
    )
    return ChatMessage.from_user(content_parts=[content[0]["text"], image])


def ask(messages, *, stream, tools, key):
    pieces = []
    generator = OpenAIChatGenerator(
        model=scenarios.MODEL,
        api_base_url=scenarios.BASE_URL,
        api_key=Secret.from_token(key),
        tools=[ADD] if tools else None,
        streaming_callback=(lambda chunk: pieces.append(chunk.content)) if stream else None,
    )
    reply = generator.run([converted(message) for message in messages])["replies"][0]
    return "".join(pieces) if stream else reply.text


scenarios.chat(ask)
scenarios.end()
