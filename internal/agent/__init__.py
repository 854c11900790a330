"""The agent: what the program decides and does, without vendors and without rooms."""
