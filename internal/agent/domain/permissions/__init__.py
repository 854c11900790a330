"""Permission policy: which tool calls run, need approval or are denied.

Reading order:

- `policy`: the policy of a run and the verdict on a call
- `modes`: the calls that run without a question
- `targets`: the paths, addresses and commands in the arguments of a call
- `rules`: rules as text
- `matchers`: match the targets of a call against rules
- `paths` (and `globs`), `hosts`, `shell`: the three kinds of targets
"""
