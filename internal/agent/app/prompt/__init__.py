"""What the model reads before the conversation.

- `system_prompt`: the parts of the system prompt and their order
"""
