"""Follows the KV events of workers until all have cleared their blocks; prints what each had then.

usage: subscriber.py map|array (EVENTS REPLAY)...
"""

import sys
from typing import Any, Optional, Union

import msgspec
import zmq

AS_ARRAYS = sys.argv[1] == "array"
Hash = Union[int, bytes]


class Event(msgspec.Struct, array_like=AS_ARRAYS, omit_defaults=True, tag=True, forbid_unknown_fields=True):
    pass


class BlockStored(Event):
    block_hashes: list[Hash]
    parent_block_hash: Optional[Hash]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Optional[list[Optional[tuple[Any, ...]]]] = None
    group_idx: Optional[int] = None
    kv_cache_spec_kind: Optional[str] = None
    kv_cache_spec_sliding_window: Optional[int] = None


class BlockRemoved(Event):
    block_hashes: list[Hash]
    medium: Optional[str]
    group_idx: Optional[int] = None


class AllBlocksCleared(Event):
    pass


class Batch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    ts: float
    events: list[Union[BlockStored, BlockRemoved, AllBlocksCleared]]
    data_parallel_rank: Optional[int] = None


DECODER = msgspec.msgpack.Decoder(Batch)


class Worker:
    def __init__(self, context, rank, events, replay):
        self.rank, self.next, self.held, self.is_over = rank, 0, set(), False
        self.live = context.socket(zmq.SUB)
        self.live.connect(events)
        self.live.setsockopt_string(zmq.SUBSCRIBE, "kv-events")
        self.replay = context.socket(zmq.DEALER)
        self.replay.connect(replay)
        self.replay_address = replay

    def receive(self):
        _, number, payload = self.live.recv_multipart()
        number = int.from_bytes(number, "big")
        if number > self.next:
            self.catch_up()
        if number == self.next:
            self.take(payload)

    def catch_up(self):
        first = self.next
        self.replay.send_multipart((b"", first.to_bytes(8, "big")))
        while True:
            _, topic, number, payload = self.replay.recv_multipart()
            if not payload:
                assert (topic, int.from_bytes(number, "big", signed=True)) == (b"", -1)
                return
            assert (topic, int.from_bytes(number, "big")) == (b"kv-events", self.next)
            self.take(payload)

    def ask_once(self, context):
        """A REQ socket gets the first batch alone, in the frames of a live one."""
        with context.socket(zmq.REQ) as socket:
            socket.connect(self.replay_address)
            socket.send((0).to_bytes(8, "big"))
            topic, number, payload = socket.recv_multipart()
            assert (topic, int.from_bytes(number, "big")) == (b"kv-events", 0)
            assert DECODER.decode(payload).data_parallel_rank == self.rank

    def take(self, payload):
        self.next += 1
        batch = DECODER.decode(payload)
        assert batch.data_parallel_rank == self.rank and batch.events
        for event in batch.events:
            self.apply(event)

    def apply(self, event):
        assert not self.is_over
        if isinstance(event, BlockStored):
            assert event.parent_block_hash is None or event.parent_block_hash in self.held
            assert len(event.token_ids) == event.block_size * len(event.block_hashes)
            assert self.held.isdisjoint(event.block_hashes)
            self.held.update(event.block_hashes)
        elif isinstance(event, BlockRemoved):
            assert self.held.issuperset(event.block_hashes)
            self.held.difference_update(event.block_hashes)
        else:
            self.is_over = True


def main():
    context = zmq.Context()
    places = list(zip(sys.argv[2::2], sys.argv[3::2]))
    workers = [Worker(context, rank, *place) for rank, place in enumerate(places)]
    poller = zmq.Poller()
    by_socket = {worker.live: worker for worker in workers}
    for socket in by_socket:
        poller.register(socket, zmq.POLLIN)
    has_asked = is_following = False
    while not all(worker.is_over for worker in workers):
        ready = poller.poll(30_000)
        assert ready, "nothing comes"
        for socket, _ in ready:
            by_socket[socket].receive()
            if not has_asked:
                by_socket[socket].ask_once(context)
                has_asked = True
        if not is_following and all(worker.next > 0 for worker in workers):
            is_following = True
            print("following", flush=True)
    for worker in workers:
        for block in worker.held:
            print(worker.rank, block)
    context.destroy(linger=0)


main()
