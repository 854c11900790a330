"""One-shot tasks, `larkspur -p`: run them, report them, validate their answers.

Standard library only, except `answer_schema`, which is imported where a schema is given.
"""
