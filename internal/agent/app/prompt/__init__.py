"""The prompt: everything that the model reads before the conversation.

- `system_prompt`: the parts of the system prompt and their order
- `context_use`: how much of the context window each part takes
- `run_prompt`: all of it together with the tools, as a run has it
"""
