"""The application services that channels and the composition root use.

- `gateway`: the facade of all channels.
- `task_options`: the options of a task: settings and the choices of its submitter.
- `task_commands`: submit, steer, interrupt, stop and recall.
- `queries`: read operations with the rights of a principal.
- `access`: roles of people, the pairing codes that grant them, and permission rules.
- `administration`: skills, MCP servers and dead letters, as the owner administers them.
- `files`: files of sessions: the files that people send and runs make.
- `chats`: chats and the delivery of their messages; `run_displays`: the displays of runs in them.
- `conversations`: the sessions of programs that send their whole history.
- `received_messages`: received messages of an account, to find undelivered ones.
- `tool_sources`: the tools of several sources as one.
- `prompt`: the input of the model before the conversation.
- `runs`: the life of a run.
- `session_commands`: the background commands of sessions.
- `plain_completions`: single replies of a model, without a run.
- `events`: the event stream.
- `background_task`: a task that runs beside a block, and a blocking call in a thread.
- `supervision`: background tasks that run as long as their process.
"""
