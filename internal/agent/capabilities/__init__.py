"""Capabilities: features that take part in runs, and the points at which they do.

Reading order: `endings` (how runs end), `capability` (the points), `registry` (who takes part at
which point), then one module for each capability.
"""
