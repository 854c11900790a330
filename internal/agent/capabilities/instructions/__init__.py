"""Instructions: standing texts of the owner, a chat, a folder and the program that sends a task.

- `capability`: what a run gets of them
- `chat_instructions`: those of a chat, as its people see them
"""
