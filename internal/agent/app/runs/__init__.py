"""The life of a run: creation, preparation, execution, questions, completion and recovery."""
