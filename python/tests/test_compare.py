"""Results side by side from Python."""

from __future__ import annotations

import json
import subprocess
from html import escape
from pathlib import Path

import pytest

import wavetank

SAMPLES = Path(__file__).resolve().parents[2] / "crates" / "report" / "tests" / "samples" / "results"


@pytest.fixture(scope="module")
def reports(examples):
    trace = examples / "conversation.jsonl"
    modes = ["round_robin", "kv_router"]
    return [wavetank.run_trace_replay(trace, num_workers=4, router_mode=mode) for mode in modes]


def test_reports_in_memory_are_those_in_files(reports, tmp_path, command):
    paths = [tmp_path / "rr.json", tmp_path / "kv.json"]
    for report, path in zip(reports, paths):
        report.save(path)
    compared = wavetank.compare(*reports, names=("rr", "kv"))
    assert compared == wavetank.compare(*paths)
    done = subprocess.run([command, "compare", *paths], check=True, capture_output=True, text=True)
    assert done.stdout == repr(compared)
    row = next(row for row in compared["rows"] if row["metric"] == "p99_ttft_ms")
    assert (row["before"], row["after"]) == tuple(report["p99_ttft_ms"] for report in reports)
    assert {"path": "simulation.router_mode", "before": '"round_robin"', "after": '"kv_router"'} in compared["plan"]


def test_conditions_are_kept_or_not(reports):
    before, after = reports
    assert wavetank.compare(before, after, fail_if="p99_ttft_ms > +1000%").failures == []
    failed = wavetank.compare(before, after, fail_if=["mean_ttft_ms < 0", "mean_ttft_ms > 0"]).failures
    assert failed == ["mean_ttft_ms > 0"]
    assert wavetank.compare(before, before, within="0.1%").failures == []
    [failure] = wavetank.compare(before, after, within="prefix_cache_reused_ratio 0.001%").failures
    assert failure.startswith("prefix_cache_reused_ratio is ")


@pytest.mark.parametrize("sample", ["vllm_serve.json", "vllm_serve.detailed.json", "aiperf.json"])
def test_a_simulation_beside_a_real_benchmark(sample, reports):
    compared = wavetank.compare(SAMPLES / sample, reports[0])
    metrics = {row["metric"] for row in compared["rows"]}
    assert {"output_throughput_tok_s", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms"} <= metrics
    assert [side["format"] for side in compared["sides"]] == [sample.split(".")[0].replace("_", "-"), "replay"]


def test_notebooks_show_it(reports):
    compared = wavetank.compare(*reports, names=("<rr>", "kv"), fail_if="mean_ttft_ms > 0")
    shown = compared._repr_html_()
    assert "&lt;rr&gt;" in shown and "<rr>" not in shown and "mean_ttft_ms &gt; 0" in shown
    assert compared.to_pandas().loc["mean_ttft_ms", "before"] == reports[0]["mean_ttft_ms"]
    assert json.loads(json.dumps(compared)) == compared


def test_notebooks_show_what_the_table_shows(reports):
    """Broken by: numbers that lose digits, remarks about the sides or differing plans that nobody sees."""
    compared = wavetank.compare(*reports)
    shown = compared._repr_html_()
    tokens = f"{reports[0]['total_input_tokens']:,}.00"
    assert tokens == "1,634,410.00" and f"{tokens}</td>" in shown and "e+06" not in shown
    for line in str(compared).split("metrics in both:\n")[1].splitlines():
        assert escape(line.strip()) in shown
    assert "simulation.router_mode: &quot;round_robin&quot; → &quot;kv_router&quot;" in shown
    beside = wavetank.compare(SAMPLES / "vllm_serve.json", reports[0])
    beside["sides"][0].update(runs=3, remarks=["<odd>", "old"])
    shown = beside._repr_html_()
    assert "vllm_serve is vllm-serve, 3 runs, and &lt;odd&gt;, old; 1 more in it alone" in shown
    assert "What differs in the plans" not in shown


def test_a_comparison_is_written_down(reports, tmp_path):
    """Broken by: a comparison that cannot be kept, or one whose numbers change on the way."""
    compared = wavetank.compare(*reports)
    compared.save(tmp_path / "compared.json")
    assert (tmp_path / "compared.json").read_text() == compared.to_json()
    assert json.loads(compared.to_json()) == compared == compared.to_dict()
    assert type(compared.to_dict()) is dict


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((5, {}), wavetank.UsageError, "before: must be a path"),
        (({}, {}), wavetank.InputError, "format|result"),
        (("nowhere.json", {}), wavetank.IoError, "nowhere.json"),
    ],
)
def test_what_is_no_result(arguments, kind, message):
    with pytest.raises(kind, match=message):
        wavetank.compare(*arguments)


def test_what_is_no_condition(reports):
    with pytest.raises(wavetank.UsageError, match="fail_if"):
        wavetank.compare(*reports, fail_if="ttft is bad")
    with pytest.raises(wavetank.UsageError, match="within"):
        wavetank.compare(*reports, within="close")
