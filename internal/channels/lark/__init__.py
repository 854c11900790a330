"""The Lark channel: Lark's protocol and cards behind the chat application's transport interface.

Reading order: `channel` (the transport and its composition), `connection` and `sdk` (the long
connection), `network` (proxy and certificates), `events` (incoming messages), `history`
(earlier messages), `silence_watch` (connections that bring no events), `card_actions` (clicks),
`api` (REST), `replies` and `message_format` (outgoing messages), `lark_markdown` (Markdown of a
model), `question_card` and `question_form` (questions), `greeting_card` (first contact),
`reactions` (emoji that rate), `directory` (the bot's identity), `app_check` (for
`larkspur doctor`).
"""
