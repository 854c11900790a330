"""Instructions: standing texts of the owner, a chat, a folder and the program that sends a task.

- `blocks`: the texts as the model gets them
- `capability`: what a run gets of them
- `chat_instructions`: those of a chat, as its people see them
"""
