"""The transcript of a conversation: hashed to find its session, or sent to a new one."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from internal.agent.domain.ids import RunId
from internal.channels.web.completions.messages import ConversationMessage, MessagePart, SentFile

MAX_TRANSCRIPT_CHARACTERS = 150_000
"""Earlier messages that a new session is told, the newest first. A note counts the others."""

MIN_DISTINCT_CHARACTERS = 100
"""An answer of this length is recognised even if the message before it has another text."""

_THOUGHTS = re.compile(
    r"<(?:(think|thinking|thought|reasoning)>|(details) type=\"[a-z_]+\")", re.IGNORECASE
)
_NAMES = {"user": "user", "assistant": "assistant", "tool": "tool"}


def transcript_hash(user: str, messages: Sequence[ConversationMessage]) -> str:
    """Return a hash of the messages of a user and the assistant.

    It ignores blanks, and parts that clients add to answers or omit: thoughts, pictures, tool
    calls. Consecutive messages of the same role count as one.

    Args:
        user: the user that the program names, or "".
        messages: the messages.
    """
    return _hash(user, _spoken(messages))


def loose_hash(user: str, messages: Sequence[ConversationMessage]) -> str:
    """Return a hash as `transcript_hash` does, but without the text of the user's last message.

    Programs add content of files and web pages to the last message alone, and send it without that
    content in the next request. "" if the answer is too short to distinguish conversations.
    """
    return _loose(user, _spoken(messages))


def transcript_hashes(
    user: str, messages: Sequence[ConversationMessage], answers: Collection[str]
) -> set[str]:
    """Return both hashes of messages with each possible next answer; "" means no answer."""
    said, hashes = _spoken(messages), set[str]()
    for answer in answers:
        whole = said.copy()
        _add(whole, "assistant", _plain(answer))
        hashes |= {_hash(user, whole), _loose(user, whole)}
    return hashes - {""}


def _spoken(messages: Sequence[ConversationMessage]) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    for message in messages:
        if message.role in {"user", "assistant"}:
            _add(said, message.role, _plain(message.text))
    return said


def _hash(user: str, said: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(msgspec.json.encode((user, said))).hexdigest()


def _loose(user: str, said: Sequence[tuple[str, str]]) -> str:
    *before, last = said or [("", "")]
    if not before or last[0] != "assistant" or len(last[1]) < MIN_DISTINCT_CHARACTERS:
        return ""
    return _hash(user, [*before[:-1], ("any", ""), last])


def _add(said: list[tuple[str, str]], role: str, words: str) -> None:
    if said and said[-1][0] == role:
        said[-1] = (role, said[-1][1] + words)
    elif words:
        said.append((role, words))


def run_hash(run_id: RunId) -> str:
    """Return a hash that stands for the conversation up to the answer of a run."""
    return hashlib.sha256(msgspec.json.encode(("run", run_id))).hexdigest()


def prompt_with_transcript(
    earlier: Sequence[ConversationMessage], message: str, name: Callable[[SentFile], str]
) -> str:
    """Return a message preceded by a transcript of the earlier messages, "" if there is none.

    Args:
        earlier: the messages before it.
        message: the text of the message.
        name: returns the name of a file of an earlier message, "" if it is missing.
    """
    told = [text for each in earlier if (text := _told(each, name))]
    if not told:
        return ""
    kept, left = len(told), MAX_TRANSCRIPT_CHARACTERS
    while kept and left >= len(told[kept - 1]):
        kept -= 1
        left -= len(told[kept])
    note = [f"({kept:,} earlier messages are left out here.)"] if kept else []
    transcript = "\n\n".join([*note, *told[kept:]])
    return f"The conversation so far:\n\n{transcript}\n\nMy message now:\n\n{message}"


def _plain(text: str) -> str:
    return "".join((_without_thoughts(text) if "<" in text else text).split())


def _without_thoughts(text: str) -> str:
    """Return a text without its thinking elements. Unclosed elements are kept."""
    kept, start, endless = list[str](), 0, set[str]()
    for opening in _THOUGHTS.finditer(text):
        name = (opening[1] or opening[2]).lower()
        if opening.start() < start or name in endless:
            continue
        closing = re.compile(f"</{name}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            endless.add(name)
            continue
        kept.append(text[start : opening.start()])
        start = closing.end()
    return "".join([*kept, text[start:]])


def _told(message: ConversationMessage, name: Callable[[SentFile], str]) -> str:
    shown = [*(_shown(part, name) for part in message.parts), message.calls]
    text = "\n".join(each for each in shown if each.strip())
    return f"{_NAMES[message.role]}: {text}" if text else ""


def _shown(part: MessagePart, name: Callable[[SentFile], str]) -> str:
    match part:
        case str():
            return part
        case SentFile():
            return f"[{name(part) or f'{part.kind} that was not sent along'}]"
        case _:
            return f"[{part.type}]"


def message_splits(
    messages: Sequence[ConversationMessage],
) -> Iterator[tuple[Sequence[ConversationMessage], Sequence[ConversationMessage]]]:
    """Yield the possible splits into a history and the messages after it, the likeliest first.

    The last message is new; so are the unanswered ones before it, if the session does not know
    them. A history has at least one message.
    """
    end = len(messages) - 1
    if end:
        yield messages[:end], messages[end:]
    start = end
    while start and messages[start - 1].role == "user":
        start -= 1
    if 0 < start < end:
        yield messages[:start], messages[start:]
