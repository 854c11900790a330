# client: guidance
# registry: PyPI
# packages: guidance==0.3.1 openai==3.57.0
# door: chat
import guidance
import scenarios
from guidance.models import OpenAI

ROLES = {"user": guidance.user, "assistant": guidance.assistant, "system": guidance.system}


def ask(messages, *, stream, tools, key):
    model = OpenAI(scenarios.MODEL, base_url=scenarios.BASE_URL, api_key=key, echo=False)
    for message in messages:
        with ROLES[message["role"]]():
            model += message["content"]
    with guidance.assistant():
        model += guidance.gen("answer")
    return model["answer"]


scenarios.chat(
    ask,
    without={
        "stream": "it always streams",
        "tools": "not tried",
        "picture": "its general model takes no pictures",
    },
)
scenarios.end()
