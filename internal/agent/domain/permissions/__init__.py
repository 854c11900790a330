"""Permission policy: which tool calls run, need approval or are denied.

Reading order:

- `policy`: the policy of a run and the verdict on a call
- `modes`: how much runs without a question
- `targets`: what the arguments of a call touch
- `rules`: rules as text
- `matchers`: match the targets of a call against rules
- `paths` (and `globs`), `hosts`, `shell`: the three kinds of targets
"""
