"""The chat application behind every chat channel; a chat service is a `ChatTransport`.

Reading order: `transport` (the interface to a service), `channel` (composition), `chat_queues`
(scheduling) with `poll_loop` and `queued_message`, `message_handler` (processing of a message) with
`chat_rules` and `policy` (permissions), `command_parser`, `command_handlers`, `command_context`,
`task_commands`, `background_commands` and `chat_settings` (commands), `answers` and
`question_text` (questions), `greetings` (first contact), `reactions` (feedback), `message_burst`
(messages sent together), `prompts` and `background` (the prompt for a message), `task_router`
(tasks and steering), `outbox_sender` (replies), `displays` (progress).
"""
