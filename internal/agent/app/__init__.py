"""The application services that channels and the composition root use.

- `gateway`: the facade of all channels.
- `task_options`: how a task is executed: settings and what its submitter chose.
- `task_commands`: submit, steer, interrupt, stop and recall.
- `queries`: what a principal may read.
- `access`: roles of people, the pairing codes that grant them, and permission rules.
- `session_files`: attachments, and what is removed with a session.
- `input_files`: the attachments of a message, as the model sees them.
- `artifacts`: files that runs make for people; `output_folder`: the folder where they are found;
  `archive`: all of them as a ZIP archive.
- `chats`: chats and the delivery of their messages; `run_displays`: the displays of runs in them.
- `runs`: the life of a run.
- `events`: the event stream.
- `background_task`: a task that runs beside a block, and a blocking call in a thread.
- `supervision`: background tasks that run as long as their process.
"""
