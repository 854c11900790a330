"""The command `larkspur`."""
