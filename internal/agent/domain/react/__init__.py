"""The ReAct loop as a pure state machine.

Reading order:

- `turn`: the Turn and its transitions
- `steps`: the next step of a Turn, and its outcome
- `run_config`: the configuration, which does not change during a Turn
- `gates`: rules on the order of calls, and the control tools that satisfy them
- `deferred_tools`: tools that no request lists, and access to them
- `tool_search`: search for tools by their names and descriptions
- `call_review`: review of the calls of a reply, control calls included
- `input_forms`: forms that calls ask people to fill in
- `resolution`: the consequences of the answer to a question
- `context_window`: selection of the messages that fit into a request
- `history`: selection of the messages of earlier runs with which a run starts
- `closing_prompts`: prompts and texts at the end of a run
"""
