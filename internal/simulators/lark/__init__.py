"""A local simulator of Lark for trying the gateway and for testing it.

It shares no code with the gateway: both communicate over REST and the websocket only.
docs/lark-sim.md lists the parts of Lark that it does not model.

Reading order: `simulator` (the whole, in process), `services` (its parts), `model` and `state`
(apps, people, chats, messages), `user_actions` (actions of people), `rest/`, `cards/` and
`websocket/` (the two protocols), `control/` and `chat_page` (the test and browser interface),
`auth`, `limits`, `faults`, `errors`, `clock`, `traffic_log`, and the HTTP layer: `server`,
`request_guard`.
"""
