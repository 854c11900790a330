"""What the command of a server needs besides what isolated commands see.

Reading order: `program_files` (the files that a program is made of) and `requirements` (what a
definition lacks).
"""
