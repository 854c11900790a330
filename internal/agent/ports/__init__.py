"""Interfaces between the agent and its adapters.

Reading order:

- `llm`: model clients, requests and replies
- `tools`: tool sources and call contexts
- `sandbox`: execution of commands
- `attachments`: storage of files
- `workspaces`: copies of the folders in which runs work
- `documents`: text of documents, size and scaling of pictures
- `skills`: know-how that the model loads when it needs it
- `instructions`: standing texts for the model
- `fair_slots`: places in resources that all people share
- `runtime`: clock, processes, dispatcher and event listeners
"""
