"""Errors of skills."""

from internal.agent.domain.errors import LarkspurError


class SkillUnreadable(LarkspurError):
    """A skill cannot be read. The message names the file and, if known, the line."""


class SkillRefused(LarkspurError):
    """A skill is not added or removed. Nothing has changed."""
