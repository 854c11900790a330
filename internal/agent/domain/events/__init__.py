"""The events of a run and the control frames of a stream.

Reading order:

- `types`: the base class and every event
- `envelope`: the envelope that carries an event
- `control`: frames about the stream itself
- `schema`: JSON Schema, documentation and TypeScript types of all of them
"""
