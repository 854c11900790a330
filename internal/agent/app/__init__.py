"""The application services that channels and the composition root use.

- `gateway`: the facade of all channels.
- `task_options`: how a task is executed: settings and what its submitter chose.
- `task_commands`: submit, steer, interrupt, stop and recall.
- `queries`: what a principal may read.
- `access`: roles of people, the pairing codes that grant them, and permission rules.
- `administration`: skills, MCP servers and dead letters, as the owner administers them.
- `files`: files of sessions: what people send and what runs make.
- `chats`: chats and the delivery of their messages; `run_displays`: the displays of runs in them.
- `conversations`: the sessions of programs that send their whole history.
- `received_messages`: what was received from an account, to find what was not delivered.
- `tool_sources`: the tools of several sources as one.
- `prompt`: what the model reads before the conversation.
- `runs`: the life of a run.
- `session_commands`: the background commands of sessions.
- `plain_completions`: single replies of a model, without a run.
- `events`: the event stream.
- `background_task`: a task that runs beside a block, and a blocking call in a thread.
- `supervision`: background tasks that run as long as their process.
"""
