"""The ReAct loop as a pure state machine."""
