"""Loader of the settings, and the home folder.

Reading order: `loader`, `yaml_document`, `service_links`, `setting_keys`, `inspect`, `reference`,
`home`, `process_start`, `terminal_env`, `time_zone`.
"""
