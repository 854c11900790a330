"""Workflow events: the types, the envelope, stream control messages and the published schema."""
