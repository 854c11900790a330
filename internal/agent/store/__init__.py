"""Stores: the records of each table and the statements that read and write them.

Every store method returns a generator of named statements; the SQL is in
`internal/storage/queries`. In reading order:

- `database`: the port to a database, `Statement`, `Read` and `Write`
- `stores`: `Stores`, one instance of every store
- `sessions`, `tasks`: conversations and the work in them
- `conversations`: the transcripts that programs have of sessions
- `history`: the earlier conversation with which a run starts
- `checkpoints`, `runs`: stored Turns, the runs that execute them, and the gateway
- `events`: the event log
- `questions`: questions to people, and plans
- `access`: permission rules, roles and the audit log
- `usage`: tokens and cost
- `lessons`, `call_repairs`: parts that models do not accept, and repairs of their calls
- `files`: uses of attachments, and files to remove
- `artifacts`: files that runs made for people
- `chats`: chat settings, received and outgoing messages, displays of runs
- `retention`: rows that are removed because of their age
- `encoding`: text and JSON as databases accept them
"""
