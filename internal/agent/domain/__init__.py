"""Facts and decisions: no await, no clock, no I/O, no vendor."""
