"""Model providers: data about their requests, models and prices.

A new provider is one entry in a module and one line in `registry`. Reading order: `provider`
defines the fields of an entry, `dialect` the form of requests. The entries follow by origin:
`claude` (Anthropic, and the clouds that serve Claude), `openai` (OpenAI and Azure), `china`, and
`others`. `registry` lists them. Reading them imports the standard library only.
"""
