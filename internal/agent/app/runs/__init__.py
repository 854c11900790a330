"""The life of a run, from a submitted task to its stored end.

- `creation`: tasks, sessions and runs in the database.
- `active`: the runs that this process executes.
- `context`: values shared by the stages of a run.
- `coordinator`: takes a run through its stages.
- `preparation`: the first Turn: history, prompt, tools and rules.
- `engine`: model calls and tool calls until the Turn pauses or is done.
- `tool_execution`: the calls of one iteration.
- `completion`: ends, pauses and hand-overs of a run in this process.
- `finalization`: the statements that end a run.
- `questions`: who may answer a question, and how it is closed.
- `answers`: what an answer changes.
- `resume`: runs that continue from a checkpoint.
- `owners`: whether the processes that execute runs still do.
- `recovery`: runs whose process died, and questions that expired.
"""
