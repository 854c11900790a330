"""Decoding of the body of a response."""

import pytest

from internal.tools.http_client import HttpResponse
from internal.tools.web_pages import content_form

PDF = b"%PDF-1.7\n1 0 obj\n"
ZIP = b"PK\x03\x04\x14\x00\x00"


@pytest.mark.parametrize(
    ("kind", "body", "form"),
    [
        ("text/html", b"text", "html"),
        ("application/xhtml+xml", b"<html/>", "html"),
        ("text/html", PDF, "binary"),
        ("text/plain", b"<!doctype html>", "text"),
        ("text/plain", ZIP, "binary"),
        ("text/plain; charset=utf-16", "<é".encode("utf-16-le"), "text"),
        ("text/plain", "é".encode("utf-16"), "text"),
        ("", b" \n<!DOCTYPE html>", "html"),
        ("", b"<!-- a -->\n<html>", "html"),
        ("", b"<?xml version='1.0'?><html>", "html"),
        ("", b"<h1>", "html"),
        ("", b"<hat>", "text"),
        ("", b"<?xml version='1.0'?><rss>", "text"),
        ("", b"", "text"),
        ("", ZIP, "binary"),
        ("binary/octet-stream", b"<html>", "html"),
        ("application/octet-stream", b"# notes", "text"),
        ("application/octet-stream", b"caf\xe9", "text"),
        ("application/x-sh", b"#!/bin/sh", "text"),
        ("application/x-sh", b"\x1b[1mcolours are text", "text"),
        ("application/pdf", PDF, "binary"),
        ("image/svg+xml", b"<svg/>", "text"),
        ("image/png", b"\x89PNG\r\n\x1a\n\x00", "binary"),
    ],
)
def test_a_body_is_read_by_its_type_and_its_beginning(kind: str, body: bytes, form: str) -> None:
    assert content_form(HttpResponse(200, {"content-type": kind}, body)) == form
