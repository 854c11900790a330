"""Hooks and event webhooks of the operator.

Reading order: settings, answer, command, signed_post, runner, webhooks.
"""
