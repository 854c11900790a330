"""Where things are kept: one interface, SQLite today."""
