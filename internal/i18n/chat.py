"""Messages and vocabulary of the chat channels, in English and Chinese."""

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from internal.i18n.call_summary import readable_tool
from internal.i18n.catalog import MessageCatalog, load_catalog
from internal.i18n.commands import CommandTexts
from internal.i18n.language import LANGUAGES, Language, LanguageSetting
from internal.i18n.runs import RunMessages

ToolTitles = Mapping[str, Mapping[Language, str]]
"""The titles of the tools, by tool name and language."""

_RESUMABLE = {
    "timeout",
    "interrupted",
    "crashed",
    "error",
    "internal_error",
    "model_key_refused",
}
_RESUMABLE |= {"model_no_credit", "model_busy", "model_unreachable", "model_unavailable"}
_RESUMABLE |= {"model_quota_used_up", "model_not_found", "model_region_refused"}
_RESUMABLE |= {"model_rate_limited", "model_loading", "model_empty", "model_error"}
_RESUMABLE |= {"model_wrong_address"}
"""The codes and reasons of ends after which the same run may do better."""
_MAX_SECONDS, _MAX_MINUTES = 120, 120
"""From here on a duration is given in minutes, and in hours."""
_SUBTASK = re.compile(r"^task (\d+)")
_CJK = "[\u3400-\u9fff\uf900-\ufaff]"


class ChatVocabulary(msgspec.Struct, frozen=True):
    """The words of one language.

    `yes` and `no` are the exact words, in lower case, that answer an approval, `retry` and
    `give_up` the words that answer for a run that cannot continue, `stop` the words that stop a run
    and `help` the words that ask for help. `switches` are command arguments by meaning, such as
    `on`.
    """

    statuses: dict[str, str]
    yes: list[str]
    no: list[str]
    stop: list[str]
    help: list[str]
    retry: list[str]
    give_up: list[str]
    switches: dict[str, list[str]]


@cache
def chat_vocabulary(language: Language) -> ChatVocabulary:
    """Return the vocabulary of a language."""
    content = load_catalog("chat", language)
    return ChatVocabulary(**{key: content[key] for key in ChatVocabulary.__struct_fields__})


@cache
def approval_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the exact words for yes and for no, of all languages."""
    known = [chat_vocabulary(language) for language in LANGUAGES]
    yes = frozenset(word for each in known for word in each.yes)
    return yes, frozenset(word for each in known for word in each.no)


@cache
def recovery_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the exact words for another try and for giving up, of all languages."""
    known = [chat_vocabulary(language) for language in LANGUAGES]
    yes, no = approval_words()
    retry = frozenset(word for each in known for word in each.retry)
    return yes | retry, no | frozenset(word for each in known for word in each.give_up)


def answer_words(kind: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the exact words for yes and for no that answer a question of this kind."""
    return recovery_words() if kind == "recovery" else approval_words()


@cache
def stop_words() -> frozenset[str]:
    """Return the exact words that stop a run, of all languages."""
    return frozenset(word for each in LANGUAGES for word in chat_vocabulary(each).stop)


@cache
def help_words() -> frozenset[str]:
    """Return the exact words that ask for help, of all languages."""
    return frozenset(word for each in LANGUAGES for word in chat_vocabulary(each).help)


def find_switch(text: str) -> str:
    """Return the meaning of a command argument in any language, such as `on`; "" if unknown."""
    wanted = text.strip().lower()
    for language in LANGUAGES:
        for meaning, words in chat_vocabulary(language).switches.items():
            if wanted in words:
                return meaning
    return ""


class ChatPhrases(MessageCatalog):
    """The chat channels' messages and words in one language."""

    def __init__(self, language: Language, tool_titles: ToolTitles | None = None) -> None:
        super().__init__("chat", language)
        self._vocabulary = chat_vocabulary(language)
        self._tool_titles = tool_titles or {}
        self.runs = RunMessages(language)

    def tool(self, name: str, title: str = "") -> str:
        """Return the title of a tool; `title` is the title from an MCP server, if given.

        If the tool has no title in this language, the result is a general one.
        """
        if title:
            return self("tool_unnamed", tool=title)
        title = self._tool_titles.get(name, {}).get(self.language, "")
        return title or self("tool_unnamed", tool=readable_tool(name[:60]))

    def activity(self, preview: str) -> str:
        """Return a subtask's activity, such as `web_fetch example.com`, with the tool's title."""
        name, _, subject = preview.partition(" ")
        if name not in self._tool_titles and "_" not in name:
            return preview
        return f"{self.tool(name)} · {subject}" if subject else self.tool(name)

    def subtask(self, path: str) -> str:
        """Return the path of a subtask, such as `task 2 · analyst`, in this language."""
        return _SUBTASK.sub(lambda found: self("subtask", number=found[1]), path)

    def status(self, name: str, stop_reason: str | None = None, calls_not_run: int = 0) -> str:
        """Return the word for a status, or for its stop reason or its missing calls."""
        if exception := self.runs.exception(name, stop_reason, calls_not_run):
            return exception.capitalize()
        words = self._vocabulary.statuses
        return words.get(stop_reason or "") or words.get(name, name)

    def duration(self, seconds: int) -> str:
        """Return a duration in seconds, minutes or hours."""
        if seconds < _MAX_SECONDS:
            return self("progress_seconds", seconds=seconds)
        if seconds < _MAX_MINUTES * 60:
            return self("duration_minutes", count=seconds // 60)
        return self("duration_hours", count=seconds // 3600, minutes=seconds // 60 % 60)

    def ended(self, stop_reason: str, error_code: str = "") -> str:
        """Return why a run ended, and how to continue it where that may help."""
        sentence = self.runs.ended(stop_reason, error_code)
        known = f"ended_{error_code}" in self.runs
        if (error_code if known else stop_reason) not in _RESUMABLE:
            return sentence
        between = "" if self.language == "zh" else " "
        return f"{sentence}{between}{self('resume_hint', command=self.command('resume'))}"

    def command(self, name: str) -> str:
        """Return the preferred spelling of a command."""
        return f"/{self.command_texts(name).word}"

    def command_texts(self, name: str) -> CommandTexts:
        """Return the texts of a command."""
        return CommandTexts(name, "chat", self.language)

    def command_help(self, name: str) -> str:
        """Return the line of a command in the help."""
        texts = self.command_texts(name)
        return self("help_line", command=f"`/{texts.word}`", help=texts("help"))


class ChatTexts:
    """The phrases of the chat channels, built once for each language, and the language setting."""

    def __init__(
        self, language: LanguageSetting = "auto", tool_titles: ToolTitles | None = None
    ) -> None:
        self.language = language
        self._phrases = {each: ChatPhrases(each, tool_titles) for each in LANGUAGES}

    def phrases_in(self, language: Language) -> ChatPhrases:
        """Return the phrases of a language."""
        return self._phrases[language]

    def phrases_for(self, text: str) -> ChatPhrases:
        """Return the phrases of the setting; `auto` follows the language of `text`."""
        language = self.language
        if language == "auto":
            language = "zh" if has_chinese(text) else "en"
        return self._phrases[language]


def has_chinese(text: str) -> bool:
    """Return True if the text contains a Chinese character."""
    return re.search(_CJK, text) is not None


def is_without_words(text: str) -> bool:
    """Return True for a blank text, and for the placeholder of a message with only files."""
    shown = text.strip()
    for language in LANGUAGES:
        start, _, end = load_catalog("chat", language)["messages"]["only_files"].partition(
            "{names}"
        )
        if shown.startswith(start) and shown.endswith(end):
            return True
    return not shown
