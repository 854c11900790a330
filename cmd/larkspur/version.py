"""The version, where nothing else needs to be imported to read it; pyproject.toml says the same."""

VERSION = "0.1.0"
