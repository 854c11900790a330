"""Local simulators of third-party services."""
