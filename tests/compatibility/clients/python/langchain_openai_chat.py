# client: langchain-openai
# registry: PyPI
# packages: langchain-openai==1.7.4
# door: chat responses
import scenarios
from langchain_openai import ChatOpenAI


def ask(messages, *, stream, tools, key):
    model = ChatOpenAI(
        model=scenarios.MODEL,
        base_url=scenarios.BASE_URL,
        api_key=key,
        use_responses_api=scenarios.DOOR == "responses",
    )
    bound = model.bind_tools(tools) if tools else model
    if not stream:
        return bound.invoke(messages).text
    return "".join(chunk.text for chunk in bound.stream(messages))


scenarios.chat(ask)
scenarios.end()
