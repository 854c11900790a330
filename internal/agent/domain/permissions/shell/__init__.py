"""Shell commands: parse them into parts and match the parts against rules.

Reading order:

- `words`: words and their values after quote removal
- `plain_lines`: the text without here-documents and continued lines
- `parser`: the parts of a command
- `program_table`: which programs run others, and which words are unsafe
- `programs`: names of programs, wrappers, unsafe words of a command
- `matcher`: allow patterns against parts
- `code_sources`: where shells and wrappers read the commands that they run
- `denials`: deny patterns against everything that a command may start
"""
