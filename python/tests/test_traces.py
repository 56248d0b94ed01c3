"""Traces as tables."""

from __future__ import annotations

import gzip
import json

import polars
import pyarrow
import pytest

import wavetank


def test_rows_are_what_the_file_says(examples):
    path = examples / "conversation.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = list(wavetank.read_trace(path))
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines):
        assert row["hash_ids"] == line["hash_ids"]
        assert row["input_length"] == line["input_length"]
        assert row["output_length"] == line["output_length"]
        assert row["timestamp_ms"] == line.get("timestamp")
        assert row["session_id"] == line.get("session_id")


def test_arrow_pandas_and_polars_take_it(examples):
    trace = wavetank.read_trace(str(examples / "conversation.jsonl"))
    rows = list(trace)
    table = pyarrow.table(trace)
    assert table.to_pylist() == rows
    assert polars.DataFrame(trace).to_dicts() == rows
    frame = trace.to_pandas()
    assert frame["input_length"].sum() == sum(row["input_length"] for row in rows)


def test_other_formats_and_compression(examples, tmp_path):
    packed = tmp_path / "trace.jsonl.gz"
    packed.write_bytes(gzip.compress((examples / "conversation.jsonl").read_bytes()))
    assert list(wavetank.read_trace(packed)) == list(wavetank.read_trace(examples / "conversation.jsonl"))
    burst = tmp_path / "burst.csv"
    burst.write_text("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,API\n")
    [row] = wavetank.read_trace(f"burstgpt:{burst}")
    assert (row["timestamp_ms"], row["input_length"], row["output_length"]) == (5000.0, 472, 18)


def test_a_large_trace_is_a_stream(tmp_path):
    """More rows than one batch holds come in order, and in several batches."""
    path = tmp_path / "many.jsonl"
    line = '{{"timestamp": {0}, "input_length": 512, "output_length": 1, "hash_ids": [{0}]}}\n'
    path.write_text("".join(line.format(number) for number in range(20_000)))
    reader = pyarrow.RecordBatchReader.from_stream(wavetank.read_trace(path))
    batches = list(reader)
    assert len(batches) > 1
    assert pyarrow.Table.from_batches(batches)["timestamp_ms"].to_pylist() == [float(n) for n in range(20_000)]


def test_what_is_wrong_is_said_where_it_is_met(tmp_path):
    with pytest.raises(wavetank.IoError):
        wavetank.read_trace(tmp_path / "none")
    with pytest.raises(wavetank.UsageError, match="trace_block_size"):
        wavetank.read_trace(tmp_path / "none", trace_block_size=0)
    path = tmp_path / "trace.jsonl"
    good = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n'
    path.write_text(good + good + "{}\n" + "not json\n")
    trace = wavetank.read_trace(path)
    with pytest.raises(wavetank.InputError, match=f"{path}:"):
        list(trace)
    with pytest.raises(Exception, match="trace.jsonl:"):
        pyarrow.table(trace)
