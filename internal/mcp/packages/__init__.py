"""Servers that are packages of a registry: installed once, before their review.

Reading order: `registry_settings` (the package indexes of the person), `interpreters` (of Python),
`program_names` (which program of the packages is started) and `installation` (the packages of one
server, in a folder of its own).
"""
