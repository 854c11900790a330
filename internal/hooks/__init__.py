"""Hooks and event webhooks of the operator.

Reading order: answer, program, command, signature, signed_post, runner, webhooks, trial.
"""
