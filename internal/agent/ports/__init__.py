"""What the agent asks of the world."""
