# client: crewai
# registry: PyPI
# packages: crewai==1.15.30
# door: chat
import os

os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"

import scenarios
from crewai import LLM


def ask(messages, *, stream, tools, key):
    model = LLM(
        model=scenarios.MODEL,
        provider="openai",
        base_url=scenarios.BASE_URL,
        api_key=key,
        stream=stream,
    )
    further = {"tools": tools} if tools else {}
    return str(model.call(messages, **further))


scenarios.chat(ask)
scenarios.end()
