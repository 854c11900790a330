"""Requirements of server commands beyond the files that isolated commands see.

Reading order: `shims` (the programs behind the shims of version managers), `program_files` (the
files that a program consists of), `downloaders` (command lines that download a package),
`project_runs` (programs of a project), `granted_paths` (paths that cannot be granted),
`requirements` (missing requirements of a definition), `reach` (the hosts that its entry does not
let it reach), `command_line` (of `larkspur mcp add`) and `advice` (advice for a server that does
not start).
"""
