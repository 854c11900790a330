"""The channels through which people use the agent; all of them call `Gateway`.

`registry` lists the chat channels. `chat` is the application that they share, `lark` the transport
for Lark; `web` serves the HTTP API and the page, `cli` is the terminal. `commands` has the slash
commands of chats and the terminal.
"""
