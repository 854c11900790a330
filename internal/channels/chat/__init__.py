"""The chat application behind every chat channel; a chat service is a `ChatTransport`.

Reading order: `transport` (the interface to a service), `channel` (composition), `chat_queues`
(whose turn it is) with `poll_loop` and `queued_message`, `message_handler` (what is done with a
message) with `chat_rules` and `policy` (who may do what), `command_parser`, `command_handlers`,
`command_context`, `task_commands`, `background_commands` and `chat_settings` (commands), `answers`
and `question_text` (questions), `greetings` (first contact), `reactions` (feedback),
`message_burst` (messages of one moment), `prompts` and `background` (what the model reads of a
message), `task_router` (tasks and steering), `outbox_sender` (replies), `displays` (progress).
"""
