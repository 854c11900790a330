"""The version; pyproject.toml states the same one."""

VERSION = "0.1.0a1"
