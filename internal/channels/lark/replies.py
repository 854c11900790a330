"""Send replies and questions in the best form that Lark accepts, and find them again."""

import asyncio
import hashlib
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from cachetools import TTLCache

from internal.channels.chat.question_text import short_id
from internal.channels.chat.transport import (
    AlbumContent,
    ChatPost,
    FileContent,
    GreetingContent,
    QuestionContent,
    QuestionNotice,
    SentPost,
    TextContent,
    TransportRejected,
)
from internal.channels.lark.api import (
    CONTENT_CODES,
    PERMISSION_CODES,
    QUESTION_POLICY,
    REPLY_POLICY,
    LarkApi,
    LarkRejected,
    LarkUnavailable,
    SendPolicy,
    as_datetime,
    as_json,
    is_open_id,
)
from internal.channels.lark.card_ladder import (
    CAUSES,
    RefusalMemory,
    Refusals,
    first_form,
    simpler_form,
)
from internal.channels.lark.greeting_card import render_greeting
from internal.channels.lark.lark_markdown import NO_PICTURES, Pictures, match_pictures
from internal.channels.lark.message_format import (
    PROGRESS_MARK,
    AnswerExtras,
    MessagePart,
    Rendering,
    add_album,
    file_type,
    is_picture,
    render_album,
    render_answer,
    render_file,
    send_uuid,
)
from internal.channels.lark.question_card import (
    QUESTION_MARK,
    card_mark,
    is_question_card,
    question_card,
    render_outcome,
    render_question,
)
from internal.channels.lark.run_buttons import run_button

log = logging.getLogger(__name__)

GONE_CODES = frozenset({230011, 230110, 231003})
"""The message to reply to was recalled or deleted."""
FINAL_CODES = (
    frozenset({230002, 230013, 99991668, 99991677, 99991679}) | CONTENT_CODES | PERMISSION_CODES
)
"""No other form would be accepted: not in the chat, no permission, content not allowed."""
FORM_CODES = frozenset({230025, 230099})
"""The content is too long, or it is no valid card."""
_REPLACE_POLICY = SendPolicy(max_attempts=1, timeout=5.0, kind="replace")
"""The sender repeats it, then sends a new message."""
_CLOCK_SKEW_SECONDS = 60.0

_MAX_IMAGE_KEYS, _IMAGE_KEY_SECONDS = 512, 3_600.0

ReplyContent = (
    TextContent | GreetingContent | QuestionContent | QuestionNotice | FileContent | AlbumContent
)


class _Sender(msgspec.Struct):
    id: str = ""


class _ListedMessage(msgspec.Struct):
    message_id: str = ""
    parent_id: str = ""
    root_id: str = ""
    thread_id: str = ""
    create_time: int = 0
    deleted: bool = False
    msg_type: str = ""
    sender: _Sender = msgspec.field(default_factory=_Sender)
    body: dict[str, str] = {}


class _Attempt:
    """An attempt to send a post: the known refusals, and the parts already shown."""

    def __init__(self, post: ChatPost, key: str, refusals: Refusals) -> None:
        self.post, self.key, self.refusals = post, key, refusals
        self.image_keys: set[str] = set()

    def note(self, part: MessagePart, code: int) -> None:
        """Omit the refused part from the following forms."""
        self.refusals = self.refusals.with_refused(part, code)


class ReplySender:
    """Sends replies as one app."""

    def __init__(self, api: LarkApi, app_id: str, *, replaces_texts: bool = False) -> None:
        self._api, self._app_id, self._replaces_texts = api, app_id, replaces_texts
        self._memory = RefusalMemory()
        self._image_keys: TTLCache[str, str] = TTLCache(_MAX_IMAGE_KEYS, _IMAGE_KEY_SECONDS)

    async def send(
        self, post: ChatPost, content: ReplyContent, key: str, *, simplicity: int = 0
    ) -> SentPost:
        """Send a post and return its first message.

        A form that Lark rejects is followed by a simpler one, which the error determines; the
        chat's next posts begin with it. A form with unknown outcome is not: Lark recognizes a
        repeated call by its uuid. The first `simplicity` forms are omitted. The first part replaces
        `post.replaces`.

        Raises:
            TransportRejected: no form is accepted.
            TransportUnavailable: it must be tried again.
        """
        rejection: LarkRejected | None = None
        pictures = await self._upload_pictures(content)
        forms = await asyncio.to_thread(self._render, content, post.chat_id, pictures.by_target)
        if post.replaces and self._replaces_texts:  # a card cannot replace a text
            forms = sorted(forms, key=lambda each: each[1][0].kind == "interactive")
        attempt = _Attempt(post, key, self._memory.begin(key, post.chat_id))
        remaining = forms[min(simplicity, len(forms) - 1) :]
        for name, parts in remaining:
            if parts is not remaining[-1][1] and _is_ruled_out(parts, attempt.refusals):
                continue
            try:
                sent = await self._send_form(attempt, name, parts)
            except _UploadRejected as error:
                rejection = error.rejection
            except LarkRejected as error:
                if error.code in FINAL_CODES:
                    raise
                rejection = error
            except LarkUnavailable as error:
                error.isolated = error.is_failure and await self._api.is_working(post.reply_to)
                raise
            else:
                return sent._replace(pictures=pictures.named(attempt.image_keys))
        raise rejection or TransportRejected("there is nothing to send")

    async def update(self, message_id: str, content: QuestionContent) -> None:
        """Replace a question's card.

        Raises:
            TransportRejected: it cannot be replaced.
            TransportUnavailable: it must be tried again.
        """
        card = as_json(question_card(content.record, content.phrases, self._app_id))
        try:
            await self._api.patch_card(message_id, card, QUESTION_POLICY)
        except LarkUnavailable as error:
            error.isolated = error.is_failure and await self._api.is_working(message_id)
            raise

    async def find(
        self,
        post: ChatPost,
        content: ReplyContent,
        since: datetime,
        *,
        known: Container[str],
        simplicity: int,
    ) -> SentPost | None:
        """Return the first message of a reply that was sent since then, or None.

        `known` are ids of other replies. A reply with missing messages counts as not sent.

        Raises:
            TransportRejected: the chat may not be read, or is only known by its person.
            TransportUnavailable: it must be tried again.
        """
        if is_open_id(post.chat_id):
            raise TransportRejected("the id of the direct chat is not known")
        forms = await asyncio.to_thread(self._render, content, post.chat_id)
        needed = 1
        if isinstance(content, TextContent):
            needed = max(len(parts) for _, parts in forms[: max(1, simplicity)])
        kind, container, parents = "chat", post.chat_id, {post.reply_to}
        if post.reply_to:
            asked = _listed(await self._api.message(post.reply_to))
            if asked.deleted:
                parents.add("")
            if asked.thread_id:  # Lark reports the root as the parent of every message
                kind, container = "thread", asked.thread_id
                parents.add(asked.root_id)
        start = since.timestamp() - _CLOCK_SKEW_SECONDS
        found: list[SentPost] = []
        async for item in self._api.messages(kind, container, start):
            message = _listed(item)
            is_ours = message.sender.id == self._app_id and message.message_id not in known
            is_recent = message.create_time >= start * 1000
            if is_ours and is_recent and message.parent_id in parents and _matches(post, message):
                sent_at = as_datetime(message.create_time)
                found.append(SentPost(message.message_id, sent_at))
        return found[0] if len(found) >= needed else None

    def _render(
        self, content: ReplyContent, chat_id: str, pictures: Pictures = NO_PICTURES
    ) -> Sequence[Rendering]:
        match content:
            case GreetingContent():
                return render_greeting(content, chat_id)
            case TextContent(text, phrases, mentions, _, buttons):
                elements = tuple(map(run_button, buttons))
                return render_answer(text, phrases, AnswerExtras(pictures, mentions, elements))
            case QuestionContent(record, phrases, reach):
                return render_question(record, phrases, self._app_id, reach=reach)
            case QuestionNotice(record, phrases):
                return render_outcome(record, phrases, self._app_id)
            case FileContent():
                return render_file(content)
            case AlbumContent():
                return render_album(content)

    async def _upload_pictures(self, content: ReplyContent) -> "_TextPictures":
        """Upload the pictures that a text shows; one that Lark does not accept has no key.

        Raises:
            LarkUnavailable: it must be tried again.
        """
        if not isinstance(content, TextContent) or not content.pictures:
            return _TextPictures({}, {})
        files = {file.name: file for file in content.pictures}
        names = await asyncio.to_thread(match_pictures, content.text, list(files))
        keys = {name: await self._upload_picture(files[name]) for name in set(names.values())}
        return _TextPictures(
            {target: keys[name] for target, name in names.items()},
            {key: name for name, key in keys.items() if key},
        )

    async def _upload_picture(self, file: FileContent) -> str:
        """Return the image key of a picture, "" if Lark does not accept it."""
        if not is_picture(file):
            return ""
        digest = hashlib.sha256(file.content).hexdigest()
        if digest in self._image_keys:  # of an attempt before
            return self._image_keys[digest]
        try:
            key = await self._api.upload_picture(file.name, file.content)
        except LarkRejected as error:
            log.info("picture not shown in its text", extra={"reason": str(error)})
            return ""
        except LarkUnavailable as error:
            if error.is_failure:  # the answer does not wait for it: the picture follows by itself
                log.info("picture not shown in its text", extra={"reason": str(error)})
                return ""
            raise
        self._image_keys[digest] = key
        return key

    async def _send_form(
        self, attempt: _Attempt, name: str, parts: Sequence[MessagePart]
    ) -> SentPost:
        """Upload the files of a form, then send its messages; return the first one."""
        post = attempt.post
        ready = [await self._upload(post, part) for part in parts]
        first: SentPost | None = None
        for number, part in enumerate(ready):
            if part is None:
                continue
            try:
                place = post._replace(replaces="") if number else post
                uuid = send_uuid(attempt.key, name, number)
                sent = await self._send_part(attempt, place, part, uuid)
            except LarkUnavailable as error:
                error.unconfirmed = error.unconfirmed or first is not None
                raise
            first = first or sent
        return first or SentPost("")

    async def _upload(self, post: ChatPost, part: MessagePart) -> MessagePart | None:
        """Return a part with its content; None if it is spare and its file is not accepted."""
        try:
            if part.album:
                keys = [await self._api.upload_picture(*each) for each in part.album]
                return add_album(part, keys)
            if part.file is None:
                return part
            name, content = part.file
            if part.kind == "image":
                key = {"image_key": await self._api.upload_picture(name, content)}
            else:
                key = {"file_key": await self._api.upload(name, content, file_type(name))}
            return part._replace(content=as_json(key))
        except LarkRejected as error:
            if not part.spare:
                raise _UploadRejected(error) from error
            _log_omitted(post, error)
            return None
        except LarkUnavailable as error:
            error.unconfirmed = False  # no message was sent
            raise

    async def _send_part(
        self, attempt: _Attempt, post: ChatPost, part: MessagePart, uuid: str
    ) -> SentPost | None:
        """Send a part in the best form that Lark accepts.

        The uuid of each form but the first one contains its name.
        """
        form = first_form(part, attempt.refusals)
        while True:
            try:
                is_best = form.form == part.form
                form_uuid = uuid if is_best else send_uuid(uuid, form.form, 0)
                sent = await self._send_message(post, form, form_uuid)
            except LarkRejected as error:
                attempt.note(form, error.card_code)
                self._memory.note(post.chat_id, form, error.card_code)
                simpler = simpler_form(form, error.card_code)
                if simpler is not None and error.code not in FINAL_CODES:
                    details = {"form": simpler.form, "reason": str(error)}
                    log.info("part sent in a simpler form", extra=details)
                    form = simpler
                    continue
                if not part.spare:
                    raise
                _log_omitted(post, error)
                return None
            attempt.image_keys |= form.pictures
            return sent

    async def _send_message(self, post: ChatPost, part: MessagePart, uuid: str) -> SentPost:
        if post.replaces and part.file is None and await self._replace(post.replaces, part):
            return SentPost(post.replaces)
        kind, content, policy = part.kind, part.content, _policy(post)
        if post.reply_to:
            try:
                return await self._api.reply(post.reply_to, kind, content, uuid=uuid, policy=policy)
            except LarkRejected as error:
                if error.code not in GONE_CODES:
                    raise
            root = post._replace(reply_to=await self._thread_root(post.reply_to))
            return await self._send_message(root, part, send_uuid(uuid, "root", 0))
        new_uuid = send_uuid(uuid, "create", 0)
        return await self._api.create(post.chat_id, kind, content, uuid=new_uuid, policy=policy)

    async def _thread_root(self, message_id: str) -> str:
        """Return the first message of the thread of a message that is gone, "" if unknown."""
        try:
            message = await self._api.message(message_id)
        except LarkRejected:
            return ""
        return str(message.get("root_id") or "") if message.get("thread_id") else ""

    async def _replace(self, message_id: str, part: MessagePart) -> bool:
        """Replace a message; False if it can no longer be updated.

        Raises:
            LarkRejected: the content is rejected.
        """
        try:
            if part.kind == "interactive":
                await self._api.patch_card(message_id, part.content, _REPLACE_POLICY)
            else:
                await self._api.edit(message_id, part.kind, part.content, _REPLACE_POLICY)
        except LarkRejected as error:
            if error.code in FINAL_CODES | FORM_CODES | CAUSES.keys():
                raise
            details = {"message_id": message_id, "reason": str(error)}
            log.info("message not replaced", extra=details)
            return False
        return True


class _TextPictures(NamedTuple):
    """The image keys of the pictures of a text by their targets there, and the names by keys."""

    by_target: Mapping[str, str]
    names: Mapping[str, str]

    def named(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the pictures with these image keys."""
        return tuple(sorted(self.names[key] for key in keys))


def _is_ruled_out(parts: Sequence[MessagePart], refusals: Refusals) -> bool:
    """Return True if every form of a message of a rendering would be refused."""
    return any(all(map(refusals.rule_out, (part, *part.alternatives))) for part in parts)


class _UploadRejected(Exception):
    """Lark does not accept a file; a form without files is still possible."""

    def __init__(self, rejection: LarkRejected) -> None:
        super().__init__(str(rejection))
        self.rejection = rejection


def _log_omitted(post: ChatPost, error: LarkRejected) -> None:
    log.info("file omitted", extra={"chat_id": post.chat_id, "reason": str(error)})


def _listed(item: Mapping[str, Any]) -> _ListedMessage:
    return msgspec.convert(item, _ListedMessage, strict=False)


def _policy(post: ChatPost) -> SendPolicy:
    return QUESTION_POLICY if isinstance(post.content, QuestionContent) else REPLY_POLICY


def is_auxiliary(kind: str, content: str) -> bool:
    """Return True for a message of the bot that shows progress or a question.

    Such a message has a title, begins with a mark, or is the card of a settled question.
    """
    try:
        decoded = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return False
    if not isinstance(decoded, dict):
        return False
    if kind == "interactive":
        return bool(decoded.get("header") or decoded.get("title")) or is_question_card(decoded)
    marks = (PROGRESS_MARK, QUESTION_MARK)
    return kind in {"text", "post"} and _first_text(decoded).startswith(marks)


def _first_text(content: dict[str, Any]) -> str:
    """Return the first text of a text message, or of a rich text with one part."""
    inner = content.get("content")
    while isinstance(inner, list) and inner:
        inner = inner[0]
    return str((inner if isinstance(inner, dict) else content).get("text", ""))


def _matches(post: ChatPost, message: _ListedMessage) -> bool:
    """Return True if a sent message is this post."""
    kind, content = message.msg_type, message.body.get("content", "")
    if isinstance(post.content, QuestionContent):
        return _asks(kind, content, post.content.record.question.id)
    if isinstance(post.content, FileContent):
        is_picture_shown = kind == "image" or (kind == "post" and '"image_key"' in content)
        return is_picture_shown or _names_file(kind, content, post.content)
    if isinstance(post.content, AlbumContent):
        is_picture_shown = kind == "post" and '"image_key"' in content
        return is_picture_shown or any(
            _names_file(kind, content, each) for each in post.content.pictures
        )
    return not is_auxiliary(kind, content)


def _asks(kind: str, content: str, question_id: str) -> bool:
    """Return True if a message asks this question: a card has its mark, a text its short id."""
    if kind == "interactive":
        return card_mark(question_id) in content or question_id in content
    return QUESTION_MARK in content and short_id(question_id) in content


def _names_file(kind: str, content: str, file: FileContent) -> bool:
    """Return True if a message is a file with this name, or its name and size in words."""
    try:
        decoded = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return False
    if not isinstance(decoded, dict):
        return False
    if kind == "file":
        return bool(decoded.get("file_name", file.name) == file.name)
    return bool(decoded.get("text") == file.words)
