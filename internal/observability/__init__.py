"""What is seen of the program from outside: its time, its log."""
