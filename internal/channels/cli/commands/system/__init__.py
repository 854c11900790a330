"""Commands on the installation.

Modules: `serve`, `lark_sim`, `doctor`, `models`, `config`, `events`, `completion`.
"""
