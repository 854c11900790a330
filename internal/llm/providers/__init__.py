"""The registry entries of the model providers, as data. Standard library only.

`provider` defines what an entry says. The entries follow by origin: `claude` (Anthropic, and the
clouds that serve Claude), `openai` (OpenAI and Azure), `china`, and `others`.
"""
