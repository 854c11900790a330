"""The event stream: from a run's events to the subscribers of its session.

- `writer`: the queue of one run; numbers and stores its events, then delivers them.
- `partials`: the text so far of replies and tool calls that are still running.
- `subscription`: cursors, buffers of recent events, and the position of one subscriber.
- `relay`: live output between the processes of a database.
- `broadcaster`: the stored log and the live events as one stream for any number of subscribers.
"""
