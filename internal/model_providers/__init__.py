"""Model providers: what is known of their requests, models and prices, as data.

A new provider is one entry in a module and one line in `registry`. Reading order: `provider`
defines what an entry says, `dialect` the form of requests. The entries follow by origin: `claude`
(Anthropic, and the clouds that serve Claude), `openai` (OpenAI and Azure), `china`, and `others`.
`registry` lists them. Reading them imports the standard library only.
"""
