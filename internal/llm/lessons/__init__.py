"""Lessons: parts of requests that a server refused once and does not get again.

A request that a server refuses because of one part is built again without that part and sent, and
the change is kept for the model and the server. Both wire formats use this.

Reading order: `refusals` (what a server refused, where its error does not say so yet), `changes`
(what a refusal changes in the dialect), `tool_search` (which tool it was, if the server does not
say), `prepared_request` (a request as a dialect lets it be), `book` (the lessons of all servers),
`negotiation` (sends, changes, sends again).
"""
