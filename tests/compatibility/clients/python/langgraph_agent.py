# client: langgraph
# registry: PyPI
# packages: langgraph==1.2.24 langchain==1.5.2 langchain-openai==1.7.4
# door: chat
import scenarios
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask(messages, *, stream, tools, key):
    model = ChatOpenAI(model=scenarios.MODEL, base_url=scenarios.BASE_URL, api_key=key)
    agent = create_agent(model, tools=[add] if tools else [])
    if not stream:
        return agent.invoke({"messages": messages})["messages"][-1].text
    found = agent.stream({"messages": messages}, stream_mode="messages")
    return "".join(chunk.text for chunk, _ in found)


scenarios.chat(ask)
scenarios.end()
