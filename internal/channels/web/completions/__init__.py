"""The model APIs of other programs: chat completions, answered by tasks."""
