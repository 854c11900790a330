"""Facts and decisions of the agent: pure, without await, clock, I/O or vendor.

Reading order:

- `ids`, `errors`, `text`: identifiers, the error tree, bounded and safe text
- `messages`, `usage`, `tools`: conversations, tokens and limits, tool specifications
- `principals`, `tasks`: people and rights, sessions, tasks, runs and agent profiles
- `artifacts`: files that runs made for people
- `capability_states`: what features remember of a run
- `plans`, `questions`, `answers`: plans, questions to people and their answers
- `permissions`: which tool calls run
- `events`: the event types, their envelope and schema
- `react`: the Turn, the ReAct loop as a state machine
"""
