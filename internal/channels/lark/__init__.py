"""The Lark channel: what is said to the bot becomes tasks, what comes of them becomes replies."""
