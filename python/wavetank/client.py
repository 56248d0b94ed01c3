"""A client of `wavetank serve`: its native API (docs/serve.md) with the standard library alone."""

from __future__ import annotations

import json
import operator
import struct
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from urllib.parse import quote

from wavetank import _check
from wavetank._wire import Answer, Wire
from wavetank.errors import Error, UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The index of the frame that says what the objects after it are.
_PREAMBLE = 2**32 - 1
# What objects a request is about.
_ASKED = ("model", "token_ids", "chunk_hashes", "cache_salt", "kv_ranks", "groups")
_FRAME = struct.Struct("<IQ")
# The longest wait in seconds: what systems count in milliseconds, in 31 bits.
_LONGEST = 2_000_000


class Lookup(TypedDict):
    """What is there of a prompt."""

    request_id: str
    mode: Literal["prefix", "blend"]
    found_chunks: int
    chunk_size: int
    requested_tokens: int
    hit_tokens: int
    l1_hit_tokens: int
    l2_hit_tokens: int
    l1_hit_keys: int
    l2_hit_keys: int
    early_exit_reason: str
    rows: int
    chunks: list[Literal["l1", "l2", "absent"]]
    chunk_hashes: list[str]


class StoredObject(TypedDict):
    """What became of an object."""

    index: int
    state: Literal["stored", "exists", "no_room"]


class Stored(TypedDict):
    """What became of objects."""

    request_id: str
    stored: int
    exists: int
    no_room: int
    bytes: int
    objects: list[StoredObject]


class Retrieved(dict[int, memoryview]):
    """Objects by their index, as parts of one buffer; `missing` says how many did not come."""

    def __init__(self, objects: Iterable[tuple[int, memoryview]], missing: int) -> None:
        super().__init__(objects)
        self.missing = missing


class Client:
    """Requests of a serving engine at a cache server: look up, retrieve, store, end.

    Threads may share one; connections stay open between calls, as many as there are calls at a time.
    `timeout` is in seconds, of each wait for the network. What the server refuses is a `UsageError` where the
    call is wrong and an `IoError` where the server cannot; the error's `status` is that of HTTP.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:7380", *, password: str | None = None, timeout: float | None = 30.0
    ) -> None:
        if password is not None and not _check.text("password", password).isprintable():
            raise UsageError("has characters that no header has", "password")
        self._wire = Wire(_check.text("url", url), password, _seconds(timeout))

    def lookup(
        self,
        request_id: str,
        model: str,
        *,
        token_ids: Sequence[int] | None = None,
        chunk_hashes: Sequence[str] | None = None,
        mode: Literal["prefix", "blend"] = "prefix",
        cache_salt: str = "",
        kv_ranks: Sequence[int] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Lookup:
        """What is there of a prompt, by its token ids or by hashes of its chunks; it is held until `end`.

        `prefix` finds the longest prefix of which every rank and group has all objects, `blend` every chunk
        that is there. What is behind memory is on its way when this returns.
        """
        asked = _json({"request_id": request_id, "mode": mode, **_named(locals(), *_ASKED)})
        found: Lookup = self._wire.told(Lookup.__required_keys__, "POST", "/v1/lookup", [asked])
        return found

    def retrieve(
        self,
        request_id: str,
        *,
        start: int = 0,
        stop: int | None = None,
        chunk_hashes: Sequence[str] | None = None,
        device: str | None = None,
        engine_id: int | None = None,
    ) -> Retrieved:
        """Objects that the request's last lookup found: chunks `start` up to `stop`, or those named.

        An object's index is row × chunks + chunk, where a row is a rank of a group. It waits for what is on
        its way as long as the server does; what has not come by then is left out and counted.
        """
        wanted = _named(locals(), "chunk_hashes", "device", "engine_id")
        if chunk_hashes is None:
            wanted |= {"from": start} | ({} if stop is None else {"to": stop})
        answer = self._wire.ask("POST", "/v1/retrieve", [_json({"request_id": request_id, **wanted})])
        try:
            return Retrieved(_frames(answer), _missing(answer))
        except ValueError as error:
            raise self._wire.stranger() from error

    def store(
        self,
        request_id: str,
        objects: Mapping[int, Buffer] | Iterable[Buffer],
        *,
        model: str | None = None,
        token_ids: Sequence[int] | None = None,
        chunk_hashes: Sequence[str] | None = None,
        cache_salt: str | None = None,
        kv_ranks: Sequence[int] | None = None,
        groups: Sequence[int] | None = None,
        device: str | None = None,
        engine_id: int | None = None,
    ) -> Stored:
        """Objects into the cache: bytes, arrays or anything with a buffer, by index or from index 0 on.

        They are those of the request's lookup, or of `model` and `token_ids` or `chunk_hashes`. What is there
        already is skipped (`exists`); nothing is copied on its way to the socket.
        """
        named = _named(locals(), *_ASKED, "device", "engine_id")
        pieces: list[Buffer] = []
        if named:
            words = _json({"request_id": request_id, **named})
            pieces = [_FRAME.pack(_PREAMBLE, len(words)), words]
        for key, value in _numbered(objects):
            index = _index(key)
            flat = _flat(index, value)
            pieces += [_FRAME.pack(index, flat.nbytes), flat]
        path = f"/v1/store?request_id={quote(_check.text('request_id', request_id), safe='')}"
        stored: Stored = self._wire.told(Stored.__required_keys__, "PUT", path, pieces)
        return stored

    def end(self, request_id: str) -> bool:
        """End a request, so that nothing is held for it any more; whether it had begun."""
        words = _json({"request_id": request_id})
        return bool(self._wire.told(["ended"], "POST", "/v1/end", [words])["ended"])

    def status(self, history: int | None = None) -> dict[str, Any]:
        """What the server does and holds; with the last `history` samples, one a second."""
        samples = None if history is None else _check.whole("history", history, 0, 2**32 - 1)
        path = "/status" if samples is None else f"/status?history={samples}"
        told: dict[str, Any] = self._wire.told((), "GET", path)
        return told

    def health(self) -> bool:
        """Whether a server lives there."""
        return self._is_well("/healthz")

    def ready(self) -> bool:
        """Whether it takes requests: not while it drains or a tier behind memory fails."""
        return self._is_well("/readyz")

    def close(self) -> None:
        """Close what is open; the next call opens it again."""
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<wavetank.Client: {self._wire.url}>"

    def _is_well(self, path: str) -> bool:
        try:
            self._wire.ask("GET", path)
        except Error:
            return False
        return True


def _named(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Arguments that say something, as JSON has them."""
    return {name: _plain(name, given[name]) for name in names if given[name] is not None}


def _plain(name: str, value: Any) -> Any:
    """A text, a number or a list of them, whatever kind of number or list it was."""
    if isinstance(value, (str, int)):
        return value
    if hasattr(value, "tolist") or hasattr(value, "__index__"):
        return _own(value)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(f"must be a text, a number or a list, not {value!r}", name)
    return list(value)


def _own(value: Any) -> Any:
    """A number or an array of another library as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else operator.index(value)


def _json(words: Mapping[str, Any]) -> bytes:
    """The body of a request."""
    try:
        return json.dumps(words, default=_own).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot be sent as JSON: {error}", ", ".join(words)) from error


def _seconds(timeout: Any) -> float | None:
    """How long to wait, which may be for ever."""
    seconds = None if timeout is None else _check.number("timeout", timeout)
    if seconds is not None and not 0.0 < seconds <= _LONGEST:
        message = f"must be seconds, more than 0 and at most {_LONGEST:,}, not {timeout!r}"
        raise UsageError(message, "timeout", "None waits without end")
    return seconds


def _numbered(objects: Any) -> Iterable[tuple[Any, Any]]:
    """Objects with their keys, or from 0 on."""
    if isinstance(objects, Mapping):
        return objects.items()
    if isinstance(objects, (str, bytes, bytearray, memoryview)) or not isinstance(objects, Iterable):
        raise UsageError("must be a list or a dict of objects", "objects")
    return enumerate(objects)


def _index(key: Any) -> int:
    """Which object it is."""
    try:
        index = operator.index(key)
    except TypeError:
        index = -1
    if not 0 <= index < _PREAMBLE:
        raise UsageError("is no index of an object", repr(key), "they count row by row, from 0")
    return index


def _flat(index: int, value: Buffer) -> memoryview:
    """The bytes of an object, where they are."""
    try:
        return memoryview(value).cast("B")
    except (TypeError, ValueError, BufferError) as error:
        raise UsageError(f"has no bytes in one piece: {error}", f"object {index}") from error


def _missing(answer: Answer) -> int:
    count = answer.headers.get("wavetank-missing", "")
    if not count.isdecimal():
        raise ValueError("how many objects are missing is not said")
    return int(count)


def _frames(answer: Answer) -> Iterable[tuple[int, memoryview]]:
    body, at = memoryview(answer.body).toreadonly(), 0
    while at < len(body):
        start = at + _FRAME.size
        index, length = _FRAME.unpack_from(body, at) if start <= len(body) else (0, 0)
        at = start + length
        if at > len(body):
            raise ValueError("the answer ends within an object")
        yield index, body[start:at]
