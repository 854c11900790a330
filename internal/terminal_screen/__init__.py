"""The text that a terminal shows for the output of a program. Does no I/O.

- `screen`: the lines that remain after progress bars, colours and cursor movements
"""
