"""What the program does."""
