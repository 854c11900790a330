"""ZIP files that hold a document (Office, EPUB), and their XML.

The XML is parsed by defusedxml: entities, which can name files or grow without bound, are refused.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.kinds import entry_key

MAX_UNPACKED_BYTES = 300 * 1024 * 1024
"""A document that unpacks to more is refused. zipfile reads no more than an entry declares."""
MAX_ENTRIES = 20_000

_ENCRYPTED = 0x1
_XML_EXTENSIONS = (".xml", ".rels", ".xhtml", ".html", ".opf")
DAMAGE = (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError, zlib.error)
"""Exceptions that reading a damaged entry raises."""
_MAX_NAME_CHARACTERS = 100


def open_package(file: BinaryIO, kind: str) -> zipfile.ZipFile:
    """Open a ZIP file that holds a document.

    Raises:
        DocumentUnreadable: it is damaged or encrypted, or unpacks to too much.
    """
    try:
        package = zipfile.ZipFile(file)
    except DAMAGE as error:
        raise DocumentUnreadable(f"The {kind} file is damaged: it cannot be unpacked.") from error
    entries = package.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES:
        raise DocumentUnreadable(
            f"The {kind} file unpacks to {unpacked >> 20:,} MB in {len(entries):,} entries:"
            " this is too much."
        )
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED and entry.filename.lower().endswith(_XML_EXTENSIONS):
            raise DocumentUnreadable(f"The {kind} file is encrypted.")
    return package


class Relationship(NamedTuple):
    """A reference of a part: the last component of the type's URI, and an entry or an address."""

    kind: str
    target: str


class PackageReader:
    """Reads the entries of an open package. `kind` names it in messages.

    Names are compared as Office does: without case, and with either slash. Every method but the
    `optional_…` ones raises DocumentUnreadable when an entry is missing, encrypted or damaged.

    Attributes:
        not_understood: the entries that were left out because they cannot be read.
    """

    def __init__(self, package: zipfile.ZipFile, kind: str) -> None:
        self._package = package
        self._kind = kind
        self._entries = {entry_key(entry.filename): entry for entry in package.infolist()}
        self.not_understood: list[str] = []

    def has(self, name: str) -> bool:
        """Return True if there is such an entry."""
        return entry_key(name) in self._entries

    def names(self, folder: str) -> list[str]:
        """Return the names of the entries in a folder, such as `xl/worksheets/`."""
        key = entry_key(folder)
        return sorted(each for each in self._entries if each.startswith(key))

    def size(self, name: str) -> int:
        """Return how many bytes an entry unpacks to."""
        return self._entries[entry_key(name)].file_size

    def open(self, name: str) -> IO[bytes]:
        """Open an entry."""
        try:
            return self._package.open(self._entries[entry_key(name)])
        except KeyError as error:
            raise DocumentUnreadable(
                f"The {self._kind} file is damaged: {name[:100]} is missing."
            ) from error
        except NotImplementedError as error:
            raise DocumentUnreadable(
                f"The {self._kind} file is packed with a method that is not read: save it again."
            ) from error
        except DAMAGE as error:
            raise self.damaged(name) from error

    def read(self, name: str) -> bytes:
        """Return the content of an entry."""
        try:
            with self.open(name) as entry:
                return entry.read()
        except DAMAGE as error:
            raise self.damaged(name) from error

    def events(self, name: str) -> Iterator[tuple[str, Element]]:
        """Yield `("start", element)` and `("end", element)` of an XML entry."""
        with self.open(name) as entry:
            try:
                yield from iterparse(entry, events=("start", "end"))
            except DefusedXmlException as error:
                raise DocumentUnreadable(
                    f"The {self._kind} file contains XML entities, which are not read."
                ) from error
            except (ParseError, *DAMAGE) as error:
                raise self.damaged(name) from error

    def tree(self, name: str) -> Element:
        """Return the root element of a small XML entry."""
        root = None
        for _, element in self.events(name):
            root = element
        if root is None:
            raise self.damaged(name)
        return root

    def optional_tree(self, name: str) -> Element | None:
        """Return the root element of an entry that adds to the main one, None if it cannot be read.

        Also notes it in `not_understood`, unless there is no such entry.
        """
        if not self.has(name):
            return None
        try:
            return self.tree(name)
        except DocumentUnreadable:
            self.not_understood.append(name[:_MAX_NAME_CHARACTERS])
            return None

    def note(self) -> str:
        """Return the sentence about the entries that were not understood, "" if there are none."""
        names = dict.fromkeys(self.not_understood)
        return f"[Not understood and left out: {', '.join(names)}.]\n" if names else ""

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Return the entries that a part, "" for the package, refers to, by the id of each."""
        folder, _ = posixpath.split(part)
        return {
            each.get("Id", ""): Relationship(
                each.get("Type", "").rpartition("/")[2], resolve(folder, each.get("Target", ""))
            )
            for each in self._relationship_elements(part)
            if each.get("TargetMode") != "External"
        }

    def addresses(self, part: str) -> dict[str, str]:
        """Return the addresses outside the package that a part links to, by the id of each."""
        return {
            each.get("Id", ""): each.get("Target", "")
            for each in self._relationship_elements(part)
            if each.get("TargetMode") == "External"
        }

    def related(self, part: str, kind: str) -> list[str]:
        """Return the entries of a kind, such as `comments`, that a part refers to."""
        found = self.relationships(part).values()
        return [each.target for each in found if each.kind == kind and self.has(each.target)]

    def main_part(self, usual: str) -> str:
        """Return the name of the main entry of an Office file, by default `usual`."""
        for kind, target in self.relationships("").values():
            if kind == "officeDocument" and self.has(target):
                return target
        if self.has(usual):
            return usual
        raise DocumentUnreadable(f"The {self._kind} file is damaged: its main part is missing.")

    def _relationship_elements(self, part: str) -> list[Element]:
        folder, base = posixpath.split(part)
        root = self.optional_tree(posixpath.join(folder, "_rels", f"{base}.rels"))
        return [] if root is None else [e for e in root if local_name(e) == "Relationship"]

    def damaged(self, name: str) -> DocumentUnreadable:
        """Return the error for an entry that cannot be read."""
        return DocumentUnreadable(f"The {self._kind} file is damaged at {name[:100]}.")


def resolve(folder: str, target: str) -> str:
    """Return the entry that a link in a folder of the package leads to."""
    path = unquote(target.partition("#")[0]).replace("\\", "/")
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def local_attribute(element: Element, name: str) -> str:
    """Return an attribute of whatever namespace, "" if there is none."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return ""


def relationship_id(element: Element) -> str:
    """Return the relationship that an element refers to; it may have an id of its own as well."""
    return next((value for key, value in element.attrib.items() if key.endswith("}id")), "")
