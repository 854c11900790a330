"""The web door."""
