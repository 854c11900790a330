"""The transcript of a conversation: hashed to find its session, or told to a new one."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from internal.agent.domain.ids import RunId
from internal.channels.web.completions.messages import ConversationMessage, MessagePart, SentFile

MAX_TRANSCRIPT_CHARACTERS = 150_000
"""Earlier messages that a new session is told, the newest first. A note counts the others."""

_THOUGHTS = re.compile(
    r"<(think|thinking|thought|reasoning)>.*?</\1>|<details type=\"[a-z_]+\".*?</details>",
    re.DOTALL | re.IGNORECASE,
)
_NAMES = {"user": "user", "assistant": "assistant", "tool": "tool"}


def transcript_hash(user: str, messages: Sequence[ConversationMessage]) -> str:
    """Return a hash of what a user and the assistant said; see `transcript_hashes`."""
    (found,) = transcript_hashes(user, messages, {""})
    return found


def transcript_hashes(
    user: str, messages: Sequence[ConversationMessage], answers: Collection[str]
) -> set[str]:
    """Return hashes of what a user and the assistant said, one for each possible answer.

    Blanks do not count, nor what clients add to answers or leave out of them: thoughts, pictures,
    calls of tools. Messages of the same role in a row count as one.

    Args:
        user: whom the program names as its user, "" for nobody.
        messages: the messages before the answer.
        answers: last messages of the assistant, "" for none.
    """
    said: list[tuple[str, str]] = []
    for message in messages:
        if message.role in {"user", "assistant"}:
            _add(said, message.role, _plain(message.text))
    hashes = set[str]()
    for answer in answers:
        whole = said.copy()
        _add(whole, "assistant", _plain(answer))
        hashes.add(hashlib.sha256(msgspec.json.encode((user, whole))).hexdigest())
    return hashes


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
    """Return a message after a transcript of those before it, "" if there is none.

    Args:
        earlier: the messages before it.
        message: the text of the message.
        name: returns the name of a file of an earlier message, "" if it is not there.
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
    if "<" in text:
        text = _THOUGHTS.sub("", text)
    return "".join(text.split())


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
    """Yield the ways to tell a history from the messages after it, the likeliest first.

    The last message is new; so are the ones before it that nobody answered, if the session does not
    know them. A history without messages is none.
    """
    end = len(messages) - 1
    if end:
        yield messages[:end], messages[end:]
    start = end
    while start and messages[start - 1].role == "user":
        start -= 1
    if 0 < start < end:
        yield messages[:start], messages[start:]
