"""Event delivery: writing, broadcasting and subscribing."""
