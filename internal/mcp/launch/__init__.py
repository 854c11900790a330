"""What the command of a server needs besides what isolated commands see.

Reading order: `shims` (the programs behind those of version managers), `program_files` (the files
that a program is made of), `downloaders` (command lines that download a package), `project_runs`
(programs of a project), `granted_paths` (paths that cannot be granted), `requirements` (what a
definition lacks), `reach` (the hosts that it cannot reach as they are written), `command_line` (of
`larkspur mcp add`) and `advice` (what helps when a server does not start).
"""
