"""Terminal rendering: events, questions and Markdown to rows of styled text.

Reading order: `text` (width and line breaks), `theme`, `event_rows`, `subtask_rows`,
`question_panel`, `task_tree`, `transcript`. On rich: `layout`, `tables`, `markdown`, and `stream`,
which loads it on first use.
"""
