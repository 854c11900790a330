"""Prompts and texts at the end of a run."""

from internal.agent.domain.tasks import StopReason

CONTINUE_PROMPT = (
    "Your reply was cut at the output limit. Continue exactly where it stopped: repeat nothing and"
    " add no introduction."
)
CUT_REPLY_PROMPT = (
    "Your reply was cut at the limit of {tokens} tokens before it had any text. Think less, then"
    " answer the task or call a tool."
)
REFUSED = "The model declined this request."
EMPTY_REPLY_PROMPT = "Your last reply was empty. Answer the task, or call a tool."
CLOSING_PROMPTS: dict[StopReason, str] = {
    "max_iterations": "You have used all your iterations. Give your final answer now, without"
    " tools: what was done, what was not, what you found.",
    "max_output": "Your last replies were cut at the output limit. Give a short final answer now,"
    " without tools: what was done, what was not, what you found.",
    "error": "The last tool calls all failed. Give your final answer now, without tools: what was"
    " done, what was not, and why.",
    "rejected": "Nobody agreed to your plan in time, so nothing of it may be done. Say so in your"
    " final answer, without tools.",
}
STOP_EXPLANATIONS: dict[StopReason, str] = {
    "budget_exceeded": "the budget is used up",
    "error": "the last tool calls all failed",
    "rejected": "nobody agreed to the plan in time",
}
NO_ANSWER = "The run ended without an answer."
