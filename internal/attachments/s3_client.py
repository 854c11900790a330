"""Requests to a storage service that speaks S3, and sentences for failures."""

import contextlib
import io
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

import msgspec

from internal.agent.domain.errors import FilesUnavailable, NotFound
from internal.attachments.content import CHUNK_BYTES, in_thread
from internal.egress.certificates import system_context

if TYPE_CHECKING:
    from minio import Minio
    from urllib3 import BaseHTTPResponse

PART_BYTES = 8 * 1024 * 1024
"""Maximum part of an upload in memory; a larger file is sent in several parts."""
CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 15.0
URL_TTL = timedelta(minutes=15)
_THREADS = 8
_LISTED_AT_ONCE = 1000
_WRONG_KEY = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Unauthorized"}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MISSING = {"NoSuchKey", "NoSuchObject"}

T = TypeVar("T")


class Bucket(msgspec.Struct, frozen=True):
    """A bucket, and the credentials to read and write it.

    Args:
        endpoint: the origin of the service, such as `https://s3.eu-central-1.amazonaws.com`.
        name: the bucket, which exists.
        region: as the service calls it; `auto` for R2.
        access_key: the name of the key.
        secret_key: its secret.
    """

    endpoint: str
    name: str
    region: str
    access_key: str
    secret_key: str


class StoredObject(NamedTuple):
    """An object of the bucket."""

    key: str
    size: int


class S3Client:
    """A connection pool and threads for one bucket: the library blocks."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="s3")
        self._lock = threading.Lock()
        self._connected: Minio | None = None

    def close(self) -> None:
        """Start no more requests."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def upload(self, key: str, file: BinaryIO, size: int) -> None:
        """Store a file, unless there is an object of its size; it is available when complete.

        Raises:
            FilesUnavailable: it is not stored.
        """
        source = _CancellableReader(file)

        def put() -> None:
            with contextlib.suppress(NotFound), self._errors("written"):
                if self._stat(key) == size:
                    return
            self._minio.put_object(
                *(self._bucket.name, key),
                cast(BinaryIO, source),
                size,
                part_size=PART_BYTES,
                num_parallel_uploads=1,  # each holds a part in memory
            )

        await self._request("written", put, source.cancel)

    async def size(self, key: str) -> int:
        """Return the size of an object.

        Raises:
            NotFound: it does not exist.
            FilesUnavailable: the service does not answer.
        """
        stat = partial(self._stat, key)
        return await self._request("read", stat)

    async def read(self, key: str, start: int = 0, length: int = 0) -> AsyncGenerator[bytes]:
        """Yield an object, or `length` bytes of it from `start`.

        Raises:
            NotFound: it does not exist.
            FilesUnavailable: the service does not answer, or stops to.
        """
        get = partial(self._get, key, start, length)
        response = await self._request("read", get)
        try:
            read = partial(response.read, CHUNK_BYTES)
            while piece := await self._request("read", read):
                yield piece
        finally:
            response.close()  # an unread rest cannot be skipped

    async def remove(self, key: str) -> None:
        """Remove an object, if it exists.

        Raises:
            FilesUnavailable: it may still exist.
        """
        await self._request("removed", lambda: self._minio.remove_object(self._bucket.name, key))

    async def list(self, prefix: str, after: str = "") -> AsyncGenerator[StoredObject]:
        """Yield the objects whose keys start with a prefix and are greater than `after`, in order.

        Raises:
            FilesUnavailable: the service does not answer, or stops to.
        """
        found: Iterator[StoredObject] | None = None

        def next_objects() -> list[StoredObject]:
            nonlocal found
            if found is None:
                found = self._list(prefix, after)
            return list(islice(found, _LISTED_AT_ONCE))

        while objects := await self._request("listed", next_objects):
            for each in objects:
                yield each

    async def url(self, key: str, headers: dict[str, str]) -> str:
        """Return a URL with which anybody can read an object for the time `URL_TTL`.

        `headers` are response headers.
        """
        sign = partial(
            lambda: self._minio.presigned_get_object(
                self._bucket.name, key, expires=URL_TTL, response_headers=dict(headers)
            )
        )
        return await self._request("read", sign)

    @property
    def _minio(self) -> "Minio":
        """The client of the library, whose import takes half a second; for threads only."""
        with self._lock:
            if self._connected is None:
                self._connected = _connect(self._bucket)
            return self._connected

    def _stat(self, key: str) -> int:
        return self._minio.stat_object(self._bucket.name, key).size or 0

    def _get(self, key: str, start: int, length: int) -> "BaseHTTPResponse":
        return self._minio.get_object(self._bucket.name, key, offset=start, length=length)

    def _list(self, prefix: str, after: str) -> Iterator[StoredObject]:
        for each in self._minio.list_objects(
            self._bucket.name, prefix, recursive=True, start_after=after or None
        ):
            yield StoredObject(each.object_name or "", each.size or 0)

    async def _request(
        self, done: str, function: Callable[[], T], on_cancel: Callable[[], None] = lambda: None
    ) -> T:
        def call() -> T:
            with self._errors(done):
                return function()

        return await in_thread(call, self._executor, on_cancel)

    @contextlib.contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Translate errors of the library into errors of the store."""
        from minio.error import MinioException, S3Error  # noqa: PLC0415 - as in _connect
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - comes with minio

        try:
            yield
        except (MinioException, HTTPError, OSError, ValueError, SyntaxError) as error:
            if isinstance(error, S3Error):
                code = error.code or ""
            else:  # minio decodes errors of the type application/xml only
                code = "".join(_CODE.findall(str(error))[:1])
            if code in _MISSING:
                raise NotFound(
                    "there is no such attachment", reason_code="no_attachment"
                ) from error
            raise FilesUnavailable(
                f"attachments cannot be {done}: {self._describe(error, code)}"
            ) from error

    def _describe(self, error: Exception, code: str) -> str:
        """Return the meaning of a library error for this bucket."""
        from minio.error import MinioException  # noqa: PLC0415 - as in _connect

        where = urlsplit(self._bucket.endpoint).netloc
        if code == "NoSuchBucket":
            return f"{where} has no bucket {self._bucket.name}"
        if code in _WRONG_KEY:
            return f"{where} refuses the access key ({code})"
        if code:
            return f"{where} answered {code}"
        if isinstance(error, MinioException | SyntaxError):  # of the parser of XML
            return f"{where} does not answer as a storage service does"
        return f"{where} cannot be reached"


class _CancellableReader(io.RawIOBase):
    """A file whose upload can be ended by another thread."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def read(self, size: int = -1) -> bytes:
        if self._cancelled.is_set():
            raise OSError("the upload was cancelled")
        return self._file.read(size)


def _connect(bucket: Bucket) -> "Minio":
    from minio import Minio  # noqa: PLC0415 - optional, and slow to import
    from urllib3 import PoolManager, Retry, Timeout  # noqa: PLC0415 - comes with minio

    endpoint = urlsplit(bucket.endpoint)
    return Minio(
        endpoint.netloc,
        bucket.access_key,
        bucket.secret_key,
        secure=endpoint.scheme == "https",
        region=bucket.region,  # else it is asked for before the first request
        http_client=PoolManager(
            maxsize=_THREADS,
            timeout=Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=READ_TIMEOUT_SECONDS),
            ssl_context=system_context(),
            retries=Retry(
                total=2, read=1, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504]
            ),
        ),
    )
