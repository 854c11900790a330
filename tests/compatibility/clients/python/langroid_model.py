# client: langroid
# registry: PyPI
# packages: langroid==0.69.16
# door: chat
# untried: when it starts it loads an encoding from an address that is no registry
import scenarios
from langroid.language_models import OpenAIGPT, OpenAIGPTConfig
from langroid.language_models.base import LLMMessage, Role


def ask(messages, *, stream, tools, key):
    pieces = []
    config = OpenAIGPTConfig(
        chat_model=scenarios.MODEL,
        api_base=scenarios.BASE_URL,
        api_key=key,
        stream=stream,
        timeout=60,
        streamer=lambda text, *_: pieces.append(text),
    )
    model = OpenAIGPT(config)
    given = [LLMMessage(role=Role(each["role"]), content=each["content"]) for each in messages]
    return model.chat(given, max_tokens=500).message


scenarios.chat(ask, without={"tools": "not tried", "picture": "not tried"})
scenarios.end()
