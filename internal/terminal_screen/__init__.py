"""What a terminal shows of the output of a program. Does no I/O.

- `screen`: the lines that remain when progress bars, colours and cursor movements have been obeyed
"""
