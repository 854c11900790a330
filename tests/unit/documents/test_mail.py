"""Messages and their attachments."""

import email.message
import email.policy
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.documents.mail import is_message, page_of_message, read_mail
from tests.support.property_examples import examples

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)


def text_of(content: bytes) -> str:
    return "".join(read_mail(io.BytesIO(content)).pieces)


@given(WORDS, WORDS, WORDS, st.lists(WORDS, max_size=3))
@examples(60)
def test_headers_text_and_attachments_are_read_in_every_script(
    subject: str, sender: str, body: str, names: list[str]
) -> None:
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message["Subject"] = subject
    message["From"] = f'"{sender}" <a@example.com>'
    message.set_content(body)
    message.add_alternative(f"<p>{body}</p>", subtype="html")
    for name in names:
        message.add_attachment(b"x", maintype="image", subtype="png", filename=name)
    content = message.as_bytes()
    text = text_of(content)
    assert is_message(content)
    assert f"Subject: {subject}\n" in text
    assert sender in text
    assert text.count(body) >= 1
    for name in names:
        assert f"- {name} (image/png, 1 bytes)\n" in text


@pytest.mark.parametrize("charset", ["gb2312", "gbk", "big5", "iso-2022-jp", "no-such-charset", ""])
def test_a_body_is_read_in_the_encoding_that_it_has(charset: str) -> None:
    known = charset not in {"", "no-such-charset"}
    body = "中文".encode(charset if known else "utf-8")
    declared = f"; charset={charset}" if charset else ""
    head = f"Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain{declared}\r\n\r\n"
    assert text_of(head.encode() + body) == "Subject: x\n\n中文\n\n"


def test_the_page_of_a_web_archive_is_found() -> None:
    archive = (
        b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\n"
        b"Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        b"<p>a =3D b</p>\r\n--x\r\nContent-Type: image/png\r\nContent-Location: a.png\r\n\r\nx\r\n"
        b"--x--\r\n"
    )
    assert page_of_message(archive).strip() == b"<p>a = b</p>"
    assert "a = b\n" in text_of(archive)
    assert page_of_message(b"Subject: x\n\nplain") == b""


def test_a_message_that_ends_early_is_read_up_to_there() -> None:
    cut = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhello"
    assert text_of(cut) == "Subject: x\n\nhello\n\n"


def test_what_is_no_message_is_not_taken_for_one() -> None:
    assert not is_message(b"Dear Bob: hello\nhow are you")
    assert not is_message(b"<html>")
