"""Terminal rendering."""
