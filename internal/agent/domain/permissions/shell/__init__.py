"""Shell commands: parse them into parts and match the parts against rules.

Reading order:

- `words`: words and their values after quote removal
- `parser`: the parts of a command
- `programs`: which programs run others, and which words are unsafe
- `matcher`: allow and deny patterns against parts
"""
