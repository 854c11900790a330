"""Profiles from YAML files: those that are shipped, and the owner's in the home folder.

Reading order: `profile_file` (one file) and `library` (all files, and what they extend).
"""
