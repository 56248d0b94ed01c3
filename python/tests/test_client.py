"""The client against a real `wavetank serve` on a loopback port."""

from __future__ import annotations

import os
import socket
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from wavetank import Client, IoError, UsageError, _wire

Serve = Callable[..., Any]


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    with Client(server.url, timeout=60.0) as client:
        yield client


def test_what_was_stored_is_found_and_retrieved(client: Client) -> None:
    """Broken by: frames written or read otherwise than the server does, bytes of another object."""
    tokens = list(range(11))
    missed = client.lookup("r1", "org/m", token_ids=tokens)
    assert (missed["found_chunks"], missed["requested_tokens"], missed["chunks"]) == (0, 8, ["absent"] * 2)
    nothing = client.retrieve("r1")
    assert (dict(nothing), nothing.missing) == ({}, 2)
    objects = [os.urandom(5000), bytes(range(256)) * 400]
    stored = client.store("r1", objects)
    assert (stored["stored"], stored["exists"], stored["bytes"]) == (2, 0, 5000 + 102_400)
    assert client.store("r1", objects)["objects"] == [{"index": at, "state": "exists"} for at in (0, 1)]
    assert client.end("r1") is True and client.end("r1") is False

    found = client.lookup("r2", "org/m", chunk_hashes=missed["chunk_hashes"])
    assert (found["found_chunks"], found["hit_tokens"], found["chunks"]) == (2, 8, ["l1", "l1"])
    came = client.retrieve("r2")
    assert came.missing == 0 and [bytes(came[at]) for at in (0, 1)] == objects
    assert came[0].readonly and came[0].obj is came[1].obj
    assert list(client.retrieve("r2", start=1)) == [1] and list(client.retrieve("r2", stop=1)) == [0]
    second = client.retrieve("r2", chunk_hashes=missed["chunk_hashes"][1:])
    assert {at: bytes(part) for at, part in second.items()} == {1: objects[1]}
    client.end("r2")


def test_objects_have_names_of_their_own(client: Client) -> None:
    """Broken by: tenants, ranks or groups that are not told to the server."""
    hashes = ["a1", "b2"]
    words = {"model": "m", "chunk_hashes": hashes, "cache_salt": "alice", "kv_ranks": [1, 2], "groups": [0]}
    stored = client.store("w", {0: b"zero", 3: b"three", 2: b"two"}, **words)
    assert stored["stored"] == 3
    seen = {
        mode: client.lookup(mode, "m", chunk_hashes=hashes, cache_salt="alice", kv_ranks=[1, 2], mode=mode)
        for mode in ("prefix", "blend")
    }
    assert [seen[mode]["chunks"] for mode in seen] == [["l1", "absent"]] * 2
    assert seen["prefix"]["rows"] == 2
    for other in ({"cache_salt": "bob", "kv_ranks": [1]}, {"cache_salt": "alice", "kv_ranks": [3]}):
        assert client.lookup("other", "m", chunk_hashes=hashes, **other)["found_chunks"] == 0
    words = {"chunk_hashes": ["ff", "a1"], "cache_salt": "alice", "kv_ranks": [1]}
    behind = client.lookup("gap", "m", mode="blend", **words)
    assert behind["chunks"] == ["absent", "l1"] and behind["mode"] == "blend"
    assert {at: bytes(part) for at, part in client.retrieve("gap").items()} == {1: b"zero"}
    for name in ("w", "prefix", "blend", "other", "gap"):
        client.end(name)


def test_buffers_of_any_kind_are_stored(client: Client) -> None:
    """Broken by: lengths counted in elements, views that are copied wrongly, empty objects that are lost."""
    objects = [bytearray(b"abc"), array("d", [1.5, 2.5]), memoryview(b"0123456789")[2:5], b""]
    client.store("k", objects, model="kinds", chunk_hashes=["01", "02", "03", "04"])
    client.lookup("k", "kinds", chunk_hashes=["01", "02", "03", "04"])
    came = client.retrieve("k")
    assert [bytes(came[at]) for at in range(4)] == [b"abc", array("d", [1.5, 2.5]).tobytes(), b"234", b""]
    with pytest.raises(UsageError, match=r"object 0: has no bytes in one piece"):
        client.store("k", [memoryview(b"0123456789")[::2]])
    with pytest.raises(UsageError, match="-1: is no index of an object"):
        client.store("k", {-1: b"x"})
    assert client.store("k", [], model="kinds", chunk_hashes=["01"])["objects"] == []
    client.end("k")


def test_arrays_name_tokens(client: Client) -> None:
    """Broken by: numbers that are not Python's own."""
    asked = client.lookup("a", "org/m", token_ids=array("I", range(8)))
    assert asked["chunk_hashes"] == client.lookup("a", "org/m", token_ids=range(8))["chunk_hashes"]
    client.end("a")


@pytest.mark.parametrize(
    ("call", "status", "said"),
    [
        (lambda c: c.retrieve("never"), 404, "has begun"),
        (lambda c: c.lookup("x", "m"), 400, "token_ids or chunk_hashes"),
        (lambda c: c.lookup("x", "m", token_ids=[-1]), 400, "the body"),
        (lambda c: c.lookup("", "m", token_ids=[1]), 400, "request_id is missing"),
        (lambda c: c.store("s&p=1 ü", {9: b""}, model="m", chunk_hashes=["01"]), 400, "no object 9"),
    ],
)
def test_what_is_refused_is_said(
    client: Client, call: Callable[[Client], object], status: int, said: str
) -> None:
    """Broken by: a status without its words, a refusal that is taken for an answer."""
    with pytest.raises(UsageError, match=said) as refused:
        call(client)
    assert refused.value.status == status and refused.value.hint
    assert refused.value.place == client._wire.url


def test_how_the_server_is(server: Any, client: Client) -> None:
    """Broken by: an address that is not asked."""
    assert client.health() and client.ready()
    assert "lookups" in client.status() and client.status()["history"]["samples"] == []
    looks = (client.status(history=1)["history"]["samples"] for _ in range(1200))
    assert any(samples or time.sleep(0.05) for samples in looks)
    assert repr(client) == f"<wavetank.Client: {server.url}>"


def test_a_wrong_password_is_refused(serve: Serve, tmp_path: Path) -> None:
    """Broken by: a password that is not sent, or a refusal that is lost because the body was not taken."""
    (tmp_path / "password").write_text("sesame ü\n", encoding="utf-8")
    guarded = serve("--password-file", str(tmp_path / "password"))
    with Client(guarded.url, password="sesame ü") as client:
        assert client.store("r", [b"x"], model="m", chunk_hashes=["01"])["stored"] == 1
    for password in (None, "open"):
        with Client(guarded.url, password=password) as client:
            assert client.health()
            for size in (1, 1 << 23):
                with pytest.raises(UsageError, match="password") as refused:
                    client.store("r", [bytes(size)], model="m", chunk_hashes=["02"])
                assert refused.value.status == 401


def test_a_server_that_is_gone_is_an_error(serve: Serve) -> None:
    """Broken by: an exception of http.client, or a client that believes in a server that was there."""
    server = serve()
    with Client(server.url, timeout=5.0) as client:
        assert client.health()
        assert server.end() == 0
        with pytest.raises(IoError, match="cannot ask the server") as gone:
            client.lookup("r", "m", token_ids=[1, 2, 3, 4])
        assert gone.value.place == server.url and isinstance(gone.value, OSError)
        assert not client.health() and not client.ready()


def test_a_connection_that_was_closed_is_opened_again(serve: Serve) -> None:
    """Broken by: an error because the server has closed what was idle too long."""
    with Client(serve("--idle-timeout-seconds", "1").url) as client:
        client.store("r", [b"x"], model="m", chunk_hashes=["01"])
        (idle,) = client._wire._idle
        # The end of what the server sends is there when it has closed.
        idle.sock.settimeout(60.0)
        assert idle.sock.recv(1, socket.MSG_PEEK) == b""
        assert client.lookup("r", "m", chunk_hashes=["01"])["found_chunks"] == 1


def test_connections_stay_open(client: Client) -> None:
    """Broken by: a connection for each call, one that an error leaves in the middle of an answer."""
    client.health()
    (before,) = client._wire._idle
    with pytest.raises(UsageError):
        client.retrieve("never")
    client.status()
    assert client._wire._idle == [before]


def test_threads_share_a_client(client: Client) -> None:
    """Broken by: answers that go to another thread."""

    def turn(number: int) -> bool:
        hashes = [f"{number:04x}"]
        value = number.to_bytes(2, "big") * 5000
        client.store(f"t{number}", [value], model="threads", chunk_hashes=hashes)
        client.lookup(f"t{number}", "threads", chunk_hashes=hashes)
        came = client.retrieve(f"t{number}")
        client.end(f"t{number}")
        return bytes(came[0]) == value

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(100)))
    assert len(client._wire._idle) <= 8


def test_silence_ends_in_time() -> None:
    """Broken by: a client that waits without end for a server that took its connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = "http://127.0.0.1:{}".format(silent.getsockname()[1])
        with Client(url, timeout=0.2) as client, pytest.raises(IoError, match="does not answer in time"):
            client.status()


Canned = Callable[[bytes], Client]


def say(listener: socket.socket, answer: bytes) -> None:
    """Give everybody the same answer, and wait until they hang up."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(60.0)
            connection.recv(1 << 16)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass


@pytest.fixture
def canned() -> Iterator[Canned]:
    """`canned(answer)` gives a client of a server that has nothing else to say."""
    with ExitStack() as ends:

        def start(answer: bytes) -> Client:
            listener = ends.enter_context(socket.create_server(("127.0.0.1", 0)))
            thread = threading.Thread(target=say, args=(listener, answer))
            thread.start()
            ends.callback(thread.join)
            ends.callback(listener.shutdown, socket.SHUT_RDWR)
            url = "http://127.0.0.1:{}".format(listener.getsockname()[1])
            return ends.enter_context(Client(url, timeout=60.0))

        yield start


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer as it is sent."""
    lines = [f"HTTP/1.1 {status}", *headers, "Connection: close", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


CALLS: list[Callable[[Client], object]] = [
    lambda client: client.lookup("r", "m", token_ids=[1]),
    lambda client: client.store("r", [b"x"]),
    lambda client: client.end("r"),
    lambda client: client.status(),
]


@pytest.mark.parametrize(
    "body", [b"<html>welcome</html>", b"", b"[]", b"5", b"null", b"\xff", b"[" * 100_000], ids=range(7)
)
def test_another_server_is_known_by_its_answers(canned: Canned, body: bytes) -> None:
    """Broken by: an exception of the JSON reader, or one about a key, that names no server."""
    client = canned(http(body))
    for call in CALLS:
        with pytest.raises(IoError, match="is not an answer of wavetank serve") as caught:
            call(client)
        assert caught.value.place == client._wire.url


def test_an_answer_has_all_its_keys(canned: Canned) -> None:
    """Broken by: a lookup whose keys are found missing by whoever reads them."""
    client = canned(http(b'{"request_id": "r"}'))
    for call in CALLS[:3]:
        with pytest.raises(IoError, match="is not an answer of wavetank serve"):
            call(client)
    assert client.status() == {"request_id": "r"}


@pytest.mark.parametrize(
    "answer",
    [
        http(b"<html>hello</html>", "200 OK", "wavetank-missing: 0"),
        http(b"", "200 OK", "wavetank-missing: many"),
        http(b"", "200 OK", "wavetank-missing: -1"),
        http(b""),
    ],
    ids=["page", "word", "negative", "none"],
)
def test_objects_come_from_the_right_server(canned: Canned, answer: bytes) -> None:
    """Broken by: bytes of a page taken for objects, a count that is no number."""
    with pytest.raises(IoError, match="is not an answer of wavetank serve"):
        canned(answer).retrieve("r")


@pytest.mark.parametrize("status", [302, 304, 307, 503])
def test_redirects_are_not_followed(canned: Canned, server: Any, status: int) -> None:
    """Broken by: what is no success taken for one, objects or a password sent to another server."""
    elsewhere = f"Location: {server.url}/status"
    client = canned(http(b"", f"{status} Elsewhere", elsewhere))
    for call in [*CALLS, lambda client: client.retrieve("r")]:
        with pytest.raises(IoError, match=f"the server answers with status {status}") as caught:
            call(client)
        assert caught.value.status == status
        assert (elsewhere[10:] in (caught.value.hint or "")) == (status < 400)
    assert client.health() is False and client.ready() is False


@pytest.mark.parametrize("status", [400, 401, 404, 418])
def test_a_server_that_refuses_is_not_well(canned: Canned, status: int) -> None:
    """Broken by: a question about health that is answered with an exception."""
    client = canned(http(b'{"error": "no", "hint": 5}', f"{status} No"))
    assert client.health() is False and client.ready() is False
    with pytest.raises(UsageError, match="no\nhint: 5"):
        client.status()


@pytest.mark.parametrize("room", [4, 5000])
def test_an_announced_length_is_not_believed(
    canned: Canned, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken by: room made for all that a server says it will send, at first or when it has sent a little."""
    monkeypatch.setattr(_wire, "_AT_ONCE", room)
    client = canned(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\nshort")
    for call in [*CALLS, lambda client: client.retrieve("r")]:
        with pytest.raises(IoError, match="the answer ends after 5 of 1000000000000000 bytes"):
            call(client)


def test_large_answers_come_whole(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken by: an answer of several pieces with bytes lost or doubled between them."""
    monkeypatch.setattr(_wire, "_AT_ONCE", 5000)
    value = os.urandom(1 << 20) * 3 + b"end"
    client.store("large", [value, b"next"], model="large", chunk_hashes=["01", "02"])
    client.lookup("large", "large", chunk_hashes=["01", "02"])
    came = client.retrieve("large")
    client.end("large")
    assert came[0] == value and came[1] == b"next"


def test_numbers_may_be_numpys(client: Client, need: Any) -> None:
    """Broken by: numbers that the JSON writer does not know."""
    numpy = need("numpy")
    tokens = [numpy.int64(token) for token in range(8)]
    asked = client.lookup("n", "org/n", token_ids=tokens, kv_ranks=numpy.array([0]), groups=(numpy.int8(0),))
    assert asked["chunk_hashes"] == client.lookup("n", "org/n", token_ids=numpy.arange(8))["chunk_hashes"]
    client.store("n", {numpy.int64(1): numpy.arange(6).reshape(2, 3)}, engine_id=numpy.uint32(3))
    client.lookup("n", "org/n", token_ids=tokens, mode="blend")
    words = {"start": numpy.int64(1), "stop": numpy.int64(2), "engine_id": numpy.int64(3)}
    assert numpy.frombuffer(client.retrieve("n", **words)[1], dtype=int).tolist() == list(range(6))
    client.end("n")


@pytest.mark.parametrize("tokens", [5.5, object(), {1: 2}, [object()], b"12"])
def test_what_is_no_list_of_tokens(client: Client, tokens: Any) -> None:
    """Broken by: an exception of the JSON writer."""
    with pytest.raises(UsageError, match="token_ids"):
        client.lookup("x", "m", token_ids=tokens)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:7380", "redis://127.0.0.1", "http://", "http://h:x", "http://a:b@h", "http://h/?a=b"]
)
def test_addresses_are_checked(url: str) -> None:
    """Broken by: an address that is found wrong when the first request needs it."""
    with pytest.raises(UsageError):
        Client(url)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": 5}, "url: must be a text, not 5"),
        ({"url": "http://h/a b"}, "is no address"),
        ({"url": "http://h\udcff"}, "url: is a text that is not Unicode"),
        ({"url": "http://" + "h" * 70}, "is no address"),
        ({"timeout": -1}, "timeout: must be seconds, more than 0"),
        ({"timeout": 0}, "timeout: must be seconds, more than 0"),
        ({"timeout": float("nan")}, "timeout: must be seconds, more than 0"),
        ({"timeout": float("inf")}, "timeout: must be seconds, more than 0"),
        ({"timeout": "soon"}, "timeout: must be a number, not 'soon'"),
        ({"password": 5}, "password: must be a text, not 5"),
        ({"password": "a\nb"}, "password: has characters that no header has"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    """Broken by: an argument that is found wrong when the first request needs it, or by a raw exception."""
    with pytest.raises(UsageError, match=message):
        Client(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.store("r", {"a": b"x"}), "'a': is no index of an object"),
        (lambda c: c.store("r", 5), "objects: must be a list or a dict"),
        (lambda c: c.store("r", b"bytes"), "objects: must be a list or a dict"),
        (lambda c: c.store(5, [b"x"]), "request_id: must be a text, not 5"),
        (lambda c: c.status(history="x y"), "history: must be a whole number"),
    ],
)
def test_calls_are_checked(call: Callable[[Client], object], message: str) -> None:
    """Broken by: an exception of Python's own, which names no argument."""
    with pytest.raises(UsageError, match=message):
        call(Client("http://127.0.0.1:9"))
