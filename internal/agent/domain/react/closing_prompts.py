"""Prompts and texts at the end of a run."""

from internal.agent.domain.tasks import StopReason

CONTINUE_PROMPT = (
    "Your reply was cut at the output limit. Continue exactly where it stopped: repeat nothing and"
    " add no introduction."
)
PAUSED_PROMPT = "Your turn was paused before it was complete. Continue it."
CUT_REPLY_PROMPT = (
    "Your reply was cut at the limit of {tokens} tokens before it had any text. Think less, then"
    " answer the task or call a tool."
)
REFUSED = "The model declined this request."
FILTERED = "The content filter of the model provider stopped the answer."
REPEATED_PROMPT = (
    "You have made the same calls {times} times in a row, with the same results. Making them again"
    " changes nothing: use what you know, do something else, or give your answer."
)
REPEATED_CLOSING_PROMPT = (
    "You have made the same calls {times} times in a row, with the same results. Give your final"
    " answer now, without tools: what was done, what was not, what you found."
)
REPEATED = "the model made the same calls {times} times in a row, with the same results"
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
    "budget_exceeded": "the cost limit of the run is used up; a new message continues, and a higher"
    " max_cost (agent.max_cost, or agent.max_tokens for a model without a price) lets runs do more",
    "error": "the last tool calls all failed",
    "rejected": "nobody agreed to the plan in time",
}
DAILY_LIMIT_CODE = "daily_limit_exceeded"
DAILY_LIMIT = (
    "your limit for today is used up; it resets every day, and the owner can raise it"
    " (access.max_daily_cost, access.max_daily_tokens)"
)
TREE_LIMIT = (
    "the cost limit of the task and its subtasks together is used up; a higher max_cost"
    " (agent.max_cost) lets tasks do more"
)
NO_ANSWER = "The run ended without an answer."
