"""Who runs which run, and when."""
