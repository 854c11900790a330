"""Profiles from YAML files: the shipped ones, and the owner's in the home folder.

Reading order: `profile_file` (one file) and `library` (all files, with their base profiles).
"""
