"""Settings: where Larkspur lives, what may be set, and how it is read."""
