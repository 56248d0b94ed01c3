"""HTTP to one server: connections that stay open, and answers or errors."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
    RemoteDisconnected,
)
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wavetank.errors import Error, IoError, UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_KINDS: dict[str, type[HTTPConnection]] = {"http": HTTPConnection, "https": HTTPSConnection}
# What a server does that closed a connection while nobody looked, or did not wait for all it was sent.
_GONE = (RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError)
# What the caller can mend; the rest is the server's.
_WRONG_CALLS = range(400, 500)
_TOO_SLOW = 408
_DONE = range(200, 300)
_ELSEWHERE = range(300, 400)
# How much room is made at once for an answer; beyond that it grows with what comes, whatever is announced.
_AT_ONCE = 1 << 28
# What can stand in the first line of a request.
_PATH = re.compile(r"[!-~]*")


@dataclass(frozen=True)
class Answer:
    """What a server says."""

    status: int
    headers: HTTPMessage
    body: bytearray

    def json(self) -> Any:
        """As JSON; a ValueError where it is none."""
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class Wire:
    """Connections to a server, kept for the next call; as many as there are calls at a time."""

    def __init__(self, url: str, password: str | None, timeout: float | None) -> None:
        self.url = url.rstrip("/")
        self._kind, self._host, self._port, self._path = _split(self.url)
        self._timeout = timeout
        self._headers = {} if password is None else {"Authorization": f"Bearer {password}".encode()}
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()

    def ask(self, method: str, path: str, pieces: Sequence[Buffer] = ()) -> Answer:
        """Ask once; what the server refuses, a redirect too, and what the network does, are errors."""
        try:
            answer = self._ask(method, path, pieces)
        except TimeoutError as error:
            raise IoError("the server does not answer in time", self.url, "give a longer timeout") from error
        except (OSError, HTTPException) as error:
            raise IoError(f"cannot ask the server: {error or type(error).__name__}", self.url) from error
        if answer.status not in _DONE:
            raise _refusal(answer, self.url)
        return answer

    def told(self, keys: Iterable[str], method: str, path: str, pieces: Sequence[Buffer] = ()) -> Any:
        """Ask for a JSON object that has these keys."""
        answer = self.ask(method, path, pieces)
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict) or not told.keys() >= set(keys):
            raise self.stranger()
        return told

    def stranger(self) -> IoError:
        """What is wrong with an answer that the server never gives."""
        return IoError("is not an answer of wavetank serve", self.url, "is another server at this address?")

    def close(self) -> None:
        """Close what is open and not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _ask(self, method: str, path: str, pieces: Sequence[Buffer]) -> Answer:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._over(connection, method, path, pieces)
            except _GONE:
                # It was closed while it was idle. Asking again does no harm: what is stored is stored once.
                pass
        return self._over(self._connect(), method, path, pieces)

    def _connect(self) -> HTTPConnection:
        connection = self._kind(self._host, self._port, timeout=self._timeout)
        connection.connect()
        return connection

    def _over(self, connection: HTTPConnection, method: str, path: str, pieces: Sequence[Buffer]) -> Answer:
        """One call over one connection, which is closed unless it went well."""
        is_over = True
        try:
            response = self._send(connection, method, path, pieces)
            answer = Answer(response.status, response.headers, _body(response))
            is_over = response.will_close
        finally:
            if is_over:
                connection.close()
        if not is_over:
            with self._lock:
                self._idle.append(connection)
        return answer

    def _send(
        self, connection: HTTPConnection, method: str, path: str, pieces: Sequence[Buffer]
    ) -> HTTPResponse:
        connection.putrequest(method, self._path + path, skip_accept_encoding=True)
        for name, value in self._headers.items():
            connection.putheader(name, value)
        if method != "GET":
            connection.putheader("Content-Length", str(sum(memoryview(piece).nbytes for piece in pieces)))
        try:
            connection.endheaders()
            for piece in pieces:
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses does not wait for the rest; why it refuses may have come.
            pass
        return connection.getresponse()


def _split(url: str) -> tuple[type[HTTPConnection], str, int | None, str]:
    try:
        parts = urlsplit(url)
        kind, port = _KINDS[parts.scheme], parts.port
        # What connecting would find wrong.
        (parts.hostname or "").encode("idna")
    except (KeyError, ValueError):
        kind = None
    if kind is None or not parts.hostname or parts.query or parts.fragment or not _PATH.fullmatch(parts.path):
        raise UsageError("is no address of a server", url, "http://HOST:PORT")
    if parts.username is not None:
        raise UsageError("has a user in it", "url", "give the password as password=")
    return kind, parts.hostname, port, parts.path


def _body(response: HTTPResponse) -> bytearray:
    length = response.length
    if length is None:
        return bytearray(response.read())
    body, at = bytearray(min(length, _AT_ONCE)), 0
    while at < length:
        if at == len(body):
            body.extend(bytes(min(at, length - at)))
        with memoryview(body) as view, view[at:] as room:
            count = response.readinto(room)
        if count == 0:
            raise RemoteDisconnected(f"the answer ends after {at} of {length} bytes")
        at += count
    response.close()
    return body


def _refusal(answer: Answer, url: str) -> Error:
    is_wrong = answer.status in _WRONG_CALLS and answer.status != _TOO_SLOW
    try:
        told = answer.json()
        message, hint = str(told["error"]), told.get("hint")
    except (ValueError, TypeError, KeyError):
        message, hint = f"the server answers with status {answer.status}", None
    if answer.status in _ELSEWHERE and "location" in answer.headers:
        hint = f"it points to {answer.headers['location']}, which is not followed"
    error = (UsageError if is_wrong else IoError)(message, url, None if hint is None else str(hint))
    error.status = answer.status
    return error
