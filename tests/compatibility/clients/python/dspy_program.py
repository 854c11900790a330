# client: dspy
# registry: PyPI
# packages: dspy==3.4.1
# door: chat
import dspy
import scenarios


def ask(messages, *, stream, tools, key):
    model = dspy.LM(
        f"openai/{scenarios.MODEL}", api_base=scenarios.BASE_URL, api_key=key, cache=False
    )
    further = {"tools": tools} if tools else {}
    found = model(messages=messages, **further)[0]
    return found if isinstance(found, str) else found["text"]


scenarios.chat(ask, without={"stream": "dspy streams the fields of a program only"})
scenarios.end()
