"""The terminal channel: one-shot tasks, commands and the interactive session.

Reading order: `commands` (the command line), `client` and `transports` (requests to a gateway),
`records` (responses of the gateway), `input_files`, `artifact_files` and `clipboard` (files that
people send and get), `application` (services of the process for commands),
`headless` with `task_request`, `output_format` and `exit_codes` (one-shot tasks), `output`,
`command_output` and `id_lookup` (shared by the commands), `answer_parser`, `question_text` and
`open_question` (questions), `repl` (the interactive session), `render` (rows of text).
"""
