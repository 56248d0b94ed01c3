# What users of the package `redis` do, in both protocols: an argument is the port.
import sys
import time

import redis


def expect(found, wanted):
    assert found == wanted, f"{found!r}, not {wanted!r}"


def use(protocol):
    r = redis.Redis(port=int(sys.argv[1]), protocol=protocol)
    r.flushall()
    expect(r.ping(), True)
    expect(r.set("a", b"\x00\xff\r\n"), True)
    expect(r.get("a"), b"\x00\xff\r\n")
    expect(r.get("b"), None)
    expect(r.set("a", "x", nx=True), None)
    expect(r.set("b", "x", xx=True), None)
    expect(r.set("a", "y", get=True), b"\x00\xff\r\n")
    expect(r.set("c", "z", ex=100), True)
    assert 90 <= r.ttl("c") <= 100 and 90_000 <= r.pttl("c") <= 100_000
    expect((r.ttl("a"), r.pttl("nothing")), (-1, -2))
    expect(r.set("short", "z", px=50), True)
    time.sleep(0.2)
    expect(r.get("short"), None)
    expect(r.mset({"d": "1", "e": "2"}), True)
    expect(r.mget("d", "nothing", "e"), [b"1", None, b"2"])
    expect(r.exists("d", "e", "nothing", "d"), 3)
    expect(r.strlen("a"), 1)
    expect(r.set("text", "This is a string"), True)
    expect(r.getrange("text", 0, 3), b"This")
    expect(r.getrange("text", -3, -1), b"ing")
    expect(r.delete("d", "e", "nothing"), 2)
    expect(r.dbsize(), 3)
    expect(r.config_get("maxmemory*")["maxmemory-policy"], "allkeys-lru")
    info = r.info()
    assert info["connected_clients"] >= 1 and info["redis_version"], info
    expect((info["db0"]["keys"], info["db0"]["expires"]), (3, 1))
    expect(r.client_setname("me"), True)
    expect(r.echo("x"), b"x")
    assert r.command_count() > 10
    with r.pipeline(transaction=False) as pipe:
        for n in range(1000):
            pipe.set(f"p{n}", str(n))
            pipe.get(f"p{n}")
        expect(pipe.execute(), [x for n in range(1000) for x in (True, str(n).encode())])
    large = bytes(range(256)) * (64 << 12)
    expect(r.set("large", large), True)
    assert r.get("large") == large
    expect(r.getrange("large", 1 << 20, (1 << 20) + 9), large[1 << 20 : (1 << 20) + 10])
    for wrong in (["SET", "a"], ["SET", "a", "b", "EX", "x"], ["SET", "a", "b", "NX", "XX"], ["NOTHING"]):
        try:
            r.execute_command(*wrong)
        except redis.ResponseError:
            continue
        raise AssertionError(f"{wrong} was taken")
    expect(r.flushall(), True)
    expect(r.dbsize(), 0)
    print(f"protocol {protocol}: as expected")


for protocol in (2, 3):
    use(protocol)
