"""Instructions: standing texts of the owner, a chat, a folder and the program that sends a task.

- `capability`: the instructions of a run
- `chat_instructions`: the instructions of a chat, as its people see them
"""
