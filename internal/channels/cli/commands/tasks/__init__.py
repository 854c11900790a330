"""Commands on tasks and their questions.

Modules: `tasks`, `watch`, `say`, `stop`, `resume`, `questions`, `answer`.
"""
