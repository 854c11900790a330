"""The Lark channel: Lark's protocol and cards behind the chat application's transport interface.

Reading order: `channel` (the transport and its composition), `connection` and `sdk` (the long
connection), `receiver` and `events` (incoming messages), `card_actions` (clicks), `api` (REST),
`replies`, `message_format` and `progress_card` (outgoing messages), `question_card`,
`question_form` and `card_elements` (questions), `directory` (the bot's identity).
"""
