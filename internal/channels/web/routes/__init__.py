"""The HTTP routes, one module per resource.

`table` lists all of them: `tasks`, `questions`, `sessions`, `events`, `attachments`, `usage`,
`people`, `feedback`, `dead_letters`, `reviews`, `login`, `meta`.
"""
