"""Hooks and event webhooks of the operator.

Reading order: settings, answer, program, command, signed_post, runner, webhooks.
"""
