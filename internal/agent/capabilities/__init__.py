"""Capabilities: features that take part in runs, and the points at which they do.

Reading order: `endings` (the ends of runs), `capability` (the points), `registry` (the participants
of each point), then one module for each capability.
"""
