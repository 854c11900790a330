"""What the command of a server needs besides what isolated commands see.

Reading order: `program_files` (the files that a program is made of), `requirements` (what a
definition lacks) and `reach` (the hosts that it cannot reach as they are written).
"""
