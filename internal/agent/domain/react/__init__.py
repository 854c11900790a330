"""The ReAct loop as a pure state machine.

Reading order:

- `turn`: the Turn and its transitions
- `steps`: what a Turn asks for next, and its outcome
- `run_config`: what does not change during a Turn
- `gates`: rules on the order of calls, and the control tools that satisfy them
- `deferred_tools`: tools that no request lists, and how the model gets at them
- `tool_search`: search for tools by their names and descriptions
- `call_review`: what happens to the calls of a reply, control calls included
- `input_forms`: forms that calls ask people to fill in
- `resolution`: what follows from the answer to a question
- `context_window`: which messages fit into a request
- `history`: which messages of earlier runs a run starts with
- `closing_prompts`: prompts and texts at the end of a run
"""
