"""Tests of `internal.llm.lessons`."""
