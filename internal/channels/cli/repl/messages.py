"""What the session says, in English and Chinese: typed, so that no sentence can be missing."""

from dataclasses import dataclass
from functools import cache

from internal.i18n.catalog import Language, load_catalog


@dataclass(frozen=True)
class ReplMessages:
    """Every sentence, with `{names}` for what is filled in. Texts: catalogue `repl`."""

    # the head of a session, and the line of status
    head: str
    offline: str
    away: str
    back: str
    idle_hint: str
    running_hint: str
    getting_ready: str
    sending: str
    thinking: str
    stopping: str
    queued: str
    tokens: str
    placeholder: str
    # rows
    plan: str
    plan_step: str
    no_plan: str
    lines: str
    results: str
    exit_code: str
    more_lines: str
    denied: str
    allow_hint: str
    noted: str
    becomes_next: str
    starts_over: str
    over: str
    stopped: str
    stopped_by: str
    limit: str
    interrupted: str
    files_kept: str
    no_output: str
    output_of: str
    # questions
    asks_here: str
    asks_one_of: str
    elsewhere_one: str
    elsewhere: str
    allow_asked: str
    allow_calls: str
    call_too_long: str
    plan_asked: str
    more_rows: str
    answer_with: str
    key_once: str
    key_all: str
    key_session: str
    key_rule: str
    key_no: str
    key_none: str
    key_because: str
    key_mark: str
    key_choose: str
    key_enter: str
    key_plan_yes: str
    key_plan_no: str
    key_plan_edit: str
    key_words: str
    key_feedback: str
    hint_words: str
    hint_calls: str
    hint_writing: str
    writing_because: str
    writing_rules: str
    writing_steps: str
    said_approve: str
    said_session: str
    said_rule: str
    said_some: str
    said_edit: str
    said_reject: str
    said_expired: str
    answered_by: str
    still_waits: str
    no_questions: str
    review_on: str
    review_off: str
    rule_removed: str
    # keys
    again_quit: str
    goes_on: str
    again_leave: str
    quit_running: str
    pasted: str
    too_long: str
    # commands
    unknown: str
    nearest: str
    usage: str
    new_session: str
    resumed: str
    no_sessions: str
    no_session_yet: str
    renamed: str
    mode_is: str
    mode_ask: str
    mode_plan: str
    mode_edits: str
    rules_none: str
    rule_added: str
    model_is: str
    model_next: str
    profile_is: str
    profile_next: str
    no_tasks: str
    cost_session: str
    cost_unknown: str
    exported: str
    export_failed: str
    theme_is: str
    busy: str
    keys: str
    # what each command does, as the menu shows it
    help: str
    new: str
    resume: str
    rename: str
    show_plan: str
    permissions: str
    model: str
    profile: str
    tools: str
    tasks: str
    questions: str
    answer: str
    cost: str
    export: str
    theme: str
    doctor: str
    quit: str
    # what a command's Chinese names are, separated by blanks; the English catalogue lists them too
    aliases: dict[str, str]

    def say(self, sentence: str, /, **filled: object) -> str:
        """Return a sentence with its names filled in."""
        text: str = getattr(self, sentence)
        return text.format(**filled)


@cache
def load_messages(language: Language) -> ReplMessages:
    """Return the catalogue of a language."""
    content = load_catalog("repl", language)
    return ReplMessages(**content["messages"], aliases=content["aliases"])


def resolve_language(wanted: str, locale: str) -> Language:
    """Return the language of a setting (`auto`, `en`, `zh`) and a locale such as `zh_CN.UTF-8`."""
    if wanted == "auto":
        return "zh" if locale.lower().startswith("zh") else "en"
    return "zh" if wanted == "zh" else "en"
