"""Lark's REST API: authentication, rate limits, faults and the handlers of each resource.

Reading order: `router` (common steps of every call), `call` (a checked request), `im_messages`,
`im_media`, `im_contacts`, `application`, `message_content`, `scopes`.
"""
