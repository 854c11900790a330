"""Model clients: one adapter per wire format, and one retry layer.

Reading order: `model_catalog`, `model_factory`, `retry`, `transport`, `stream_reader`, `anthropic`,
`openai` (`_request`, `_stream`), `text_tool_calls`, `errors`, `waits`, `lenient_json`,
`server_answers`, and the packages `addresses`, for checks of addresses, `refusals`, for error
responses, and `offline`, the demo model.
"""
