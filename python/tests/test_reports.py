"""Reports in notebooks: HTML, data frames, plots and pages."""

from __future__ import annotations

import base64
import json
import math
import os
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import wavetank
from wavetank import BenchReport, Page, Plot, ReplayReport, Report, UsageError, ValidateReport, _files

PNG = b"\x89PNG\r\n\x1a\n"


class Shown(HTMLParser):
    """What somebody sees of HTML: texts, cells of tables, images; tags must close what they open."""

    VOID = {"img"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attributes))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def svg(self) -> str:
        """The text of the only image."""
        (image,) = self.images
        kind, data = (image["src"] or "").split(",", 1)
        assert kind == "data:image/svg+xml;base64"
        return base64.b64decode(data).decode()


@pytest.fixture
def validated(measured: Path) -> ValidateReport:
    return wavetank.validate(measured, tolerance=1.0)


@pytest.fixture(params=["replayed", "benched", "validated"])
def report(request: pytest.FixtureRequest) -> Any:
    """Every kind of report."""
    return request.getfixturevalue(request.param)


def test_a_replay_shows_what_the_table_of_the_command_shows(replayed: ReplayReport) -> None:
    """Broken by: a statistic under another's name, or a unit that is not the report's."""
    shown = Shown(replayed._repr_html_())
    assert shown.texts[0] == "wavetank replay: 500 requests, 2 workers, round_robin"
    for name in ["Time to first token (ms)", "Time per output token (ms)", "Inter-token latency (ms)"]:
        assert name in shown.texts
    row = shown.texts[shown.texts.index("Request latency (ms)") :]
    keys = ["mean", "min", "max", "std", "median", "p75", "p90", "p95", "p99"]
    assert row[1:10] == [f"{replayed[f'{key}_e2e_latency_ms']:,.2f}" for key in keys]
    text = "\n".join(shown.texts)
    assert f"{replayed['prefix_cache_reused_ratio'] * 100:.1f} % of prompt tokens were reused" in text
    assert "requests/s within the SLA" in text
    assert re.search(r"Where the time to the first token goes: prefill \d+ %, engine queue \d+ %", text)


def test_what_was_rejected_is_said(replayed: ReplayReport) -> None:
    """Broken by: zeros of the report shown as latencies, rejections that nobody sees."""
    args = {"num_gpu_blocks": 10, "block_size": 16}
    with pytest.warns(wavetank.WavetankWarning, match="rejected"):
        none = wavetank.run_synthetic_trace_replay(1000, 10, 3, extra_engine_args=args)
    text = "\n".join(Shown(none._repr_html_()).texts)
    assert "Warning: 3 requests rejected: " in text
    assert "N/A" in text and "0.00\n" not in text.split("requests/s")[0]
    assert "rejected" not in "".join(Shown(replayed._repr_html_()).texts)


def test_pools_and_seeds_are_shown(conversation: Path) -> None:
    """Broken by: a fleet of two pools that counts as one; seeds whose spread is not shown."""
    pools = wavetank.run_trace_replay(
        conversation,
        prefill_engine_args={"worker_type": "prefill"},
        decode_engine_args={"worker_type": "decode"},
        num_prefill_workers=2,
        num_decode_workers=3,
        router_mode="kv_router",
    )
    assert "2 prefill and 3 decode workers, kv_router" in pools._repr_html_()
    seeded = wavetank.run_trace_replay(conversation, num_workers=2, router_mode="random", seeds=3)
    shown = Shown(seeded._repr_html_())
    assert "Over 3 seeds" in shown.texts and "p99_ttft_ms" in shown.texts


def test_a_benchmark_shows_its_assessment_tiers_and_bottleneck(benched: BenchReport) -> None:
    """Broken by: a tier without its bandwidth, latencies of another part."""
    shown = Shown(benched._repr_html_())
    summary = benched["summary"]
    assert shown.texts[0] == "wavetank bench: tiny-1b, 8 users, storage assessment PASS"
    assert f"Bottleneck: {summary['bottleneck']['sentence']}" in shown.texts
    assert any(text.startswith("✓ Cache Hit Rate") for text in shown.texts)
    (cpu,) = [tier for tier in summary["tiers"] if tier["role"] == "cpu"]
    row = shown.texts[shown.texts.index("cpu read") :]
    assert row[1] == f"{cpu['reads']['operations']:,}"
    assert row[3] == f"{cpu['read_bandwidth_gbps']:,.2f}"
    assert row[6] == f"{cpu['reads']['total_ms']['p95']:.4f}"
    assert row[8] == f"{cpu['reads']['device_ms']['p95']:.4f}"


def test_a_validation_shows_measured_simulated_and_error(validated: ValidateReport) -> None:
    """Broken by: sides that are swapped, an error that is not in percent."""
    shown = Shown(validated._repr_html_())
    assert shown.texts[0] == "wavetank validate: tiny <b> on none, 2 requests"
    at = shown.texts.index("ttft_ms mean")
    assert shown.texts[at + 1 : at + 4] == ["22.50", "20.00", "-11.11 %"]
    assert any(text.startswith("Failed: ") for text in shown.texts)
    assert any(text.startswith("Worst: TPOT P99, -33") for text in shown.texts)
    assert "pre" not in shown.tags and repr(validated) == validated.table


def test_everything_from_outside_is_text(replayed: ReplayReport, benched: BenchReport) -> None:
    """Broken by: a warning, a name or a sentence that is not escaped."""
    evil = "<script>alert(1)</script>"
    other = ReplayReport({**replayed, "warnings": [evil]})
    bench = BenchReport(json.loads(json.dumps(benched)), evil)
    bench["summary"]["bottleneck"]["sentence"] = evil
    bench["plan"]["model"]["title"] = evil
    for html in [other._repr_html_(), bench._repr_html_()]:
        shown = Shown(html)
        assert "script" not in shown.tags and evil in "".join(shown.texts)
    page = wavetank.page(evil, {evil: replayed})
    frame = page._repr_html_()
    assert set(Shown(frame).tags) == {"iframe"} and 'sandbox="allow-scripts"' in frame
    assert evil not in page.to_html()


def test_html_keeps_to_itself(report: Report) -> None:
    """Broken by: styles, ids or scripts that reach other cells of a notebook."""
    html = report._repr_html_()
    shown = Shown(html)
    assert not {"style", "script", "svg"} & set(shown.tags)
    assert " id=" not in html and " class=" not in html
    assert ElementTree.fromstring(shown.svg).tag.endswith("svg")


def test_plots_of_two_reports_do_not_clash(report: Report) -> None:
    """Broken by: an id in a picture, or a style for what is not in pictures: notebooks take them in whole."""
    for name in report.plots:
        root = ElementTree.fromstring(report.plot(name).svg)
        assert root.get("class") == "fig"
        assert [node.tag for node in root.iter() if node.get("id")] == []
        assert root.get("aria-label") == root.findtext("{http://www.w3.org/2000/svg}title")
        styles = "".join(node.text or "" for node in root.iter() if node.tag.endswith("}style"))
        plain = re.sub(r"@media[^{]*", "", styles)
        rules = ",".join(re.findall(r"([^{}]+)\{", plain)).split(",")
        assert all(rule.strip().startswith(".fig") for rule in rules if rule.strip()) and ".fig" in rules


def test_every_plot_is_a_picture(report: Report, tmp_path: Path) -> None:
    """Broken by: a kind of report without plots, a name that is listed and not known."""
    assert report.plots
    assert report.plot().name == report.plots[0]
    plot = report.plot(report.plots[-1])
    assert isinstance(plot, Plot) and plot._repr_svg_() == plot.svg and report.plots[-1] in repr(plot)
    assert plot.png.startswith(PNG) and plot.png is plot.png
    plot.save(tmp_path / "a.svg")
    plot.save(str(tmp_path / "b.PNG"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == plot.svg
    assert (tmp_path / "b.PNG").read_bytes() == plot.png
    with pytest.raises(UsageError, match=r"a\.pdf: is no name of a plot\nhint: end it with"):
        plot.save(tmp_path / "a.pdf")


def test_pixels_are_drawn_when_asked_for(replayed: ReplayReport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken by: a PNG for every plot that is looked at."""
    from wavetank import _wavetank

    drawn = []
    draw = _wavetank.plot_png
    monkeypatch.setattr(_wavetank, "plot_png", lambda *words: drawn.append(words[0]) or draw(*words))
    plot = replayed.plot()
    plot._repr_svg_()
    assert drawn == []
    assert plot.png.startswith(PNG) and drawn == [plot.name]


def test_an_unknown_plot_is_refused_with_the_known_ones(report: Report) -> None:
    """Broken by: a KeyError, or a refusal that leaves one to guess."""
    with pytest.raises(UsageError) as refused:
        report.plot("nothing-of-the-kind")
    assert "nothing-of-the-kind" in refused.value.message
    assert all(name in (refused.value.hint or "") for name in report.plots)


def test_nothing_to_plot_is_said(validated: ValidateReport) -> None:
    """Broken by: an IndexError."""
    bare = ValidateReport({**validated, "requests": {}}, validated.table)
    assert bare.plots == [] and Shown(bare._repr_html_()).images == []
    with pytest.raises(UsageError, match="nothing to plot"):
        bare.plot()


def test_reports_stand_side_by_side(replayed: ReplayReport, benched: BenchReport, tmp_path: Path) -> None:
    """Broken by: a page that has lost one of them, plots of the first only."""
    other = wavetank.run_synthetic_trace_replay(500, 20, 20)
    reports = {"one": replayed, "other": json.loads(other.to_json()), "disk": benched}
    page = wavetank.page("Mine & yours", reports)
    assert isinstance(page, Page) and "one, other, disk" in repr(page)
    svg = page.plot("ttft-distribution").svg
    assert ">one<" in svg and ">other<" in svg
    assert {"tier-bandwidth", "ttft-parts"} <= set(page.plots)
    page.save_html(tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html == page.to_html() and "Mine &amp; yours" in html
    assert html.lower().startswith("<!doctype html>")
    with pytest.raises(UsageError, match="reports: there must be at least one"):
        wavetank.page("none", {})


def test_a_page_of_one_report(report: Report, tmp_path: Path) -> None:
    """Broken by: a title that is not shown."""
    report.save_html(tmp_path / "r.html", title="My run")
    assert "<title>My run</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"<title>{report.title}</title>" in report.to_html()


def test_frames_of_replays(replayed: ReplayReport, need: Any) -> None:
    """Broken by: a median that is looked for under another name."""
    need("pandas")
    frame = replayed.to_pandas()
    assert frame.loc["ttft_ms", "median"] == replayed["median_ttft_ms"]
    assert frame.loc["e2e_latency_ms", "p99"] == replayed["p99_e2e_latency_ms"]
    assert not frame.isna().any().any() and frame.shape == (6, 9)


def test_frames_of_benchmarks(benched: BenchReport, need: Any) -> None:
    """Broken by: a tier or a part that is missing, zeros where there are no samples."""
    need("pandas")
    frame = benched.to_pandas()
    tiers = {tier["role"]: tier for tier in benched["summary"]["tiers"]}
    device = tiers["storage"]["reads"]["device_ms"]
    assert frame.loc[("storage", "read", "device"), "p99_ms"] == device["p99"]
    assert frame.loc[("cpu", "write", "total"), "operations"] == tiers["cpu"]["writes"]["operations"]
    latency = benched["summary"]["end_to_end_latency_ms"]
    assert frame.loc[("requests", "end_to_end", "total"), "p9999_ms"] == latency["p9999"]
    bare = json.loads(benched.to_json())
    bare["summary"]["tiers"][0]["reads"]["operations"] = 0
    role = bare["summary"]["tiers"][0]["role"]
    assert math.isnan(BenchReport(bare).to_pandas().loc[(role, "read", "total"), "p95_ms"])


def test_frames_of_validations(validated: ValidateReport, need: Any) -> None:
    """Broken by: sides that are swapped."""
    need("pandas")
    cell = validated.to_pandas().loc[("ttft_ms", "mean")]
    assert cell.to_dict() == pytest.approx({"measured": 22.5, "simulated": 20.0, "error": -1 / 9})


def test_requests_are_a_table(replayed: ReplayReport, need: Any) -> None:
    """Broken by: a column or a row that is lost on the way to a data frame."""
    requests = replayed.per_request
    assert requests is not None and len(requests) == 500 and len(list(requests)) == 500
    assert requests[-1] == requests[499] == requests[498:][1]
    assert [row["uuid"] for row in requests[:2]] == [requests[0]["uuid"], requests[1]["uuid"]]
    with pytest.raises(IndexError):
        requests[500]
    need("pandas")
    need("pyarrow")
    frame = requests.to_pandas()
    assert set(frame.columns) == set(requests[0]) and len(frame) == 500
    assert frame["ttft_ms"].mean() == pytest.approx(replayed["mean_ttft_ms"])
    assert frame["input_length"].sum() == replayed["total_input_tokens"]


def test_traces_are_tables(conversation: Path, need: Any) -> None:
    """Broken by: a stream that can be read once only."""
    trace = wavetank.read_trace(conversation)
    rows = list(trace)
    need("pandas")
    need("pyarrow")
    for frame in (trace.to_pandas(), trace.to_pandas()):
        assert frame["input_length"].tolist() == [row["input_length"] for row in rows]


def test_other_libraries_take_the_stream(replayed: ReplayReport, conversation: Path, need: Any) -> None:
    """Broken by: a table that only pyarrow understands."""
    polars = need("polars")
    assert polars.DataFrame(replayed.per_request).height == 500
    assert polars.DataFrame(wavetank.read_trace(conversation)).height == 500


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_a_missing_package_is_named(missing: str, conversation: Path, need: Any) -> None:
    """Broken by: an import at the top, an error that does not say what to install."""
    need("pandas")
    need("pyarrow")
    program = f"""
import sys
sys.modules[{missing!r}] = None
import wavetank
try:
    wavetank.read_trace({str(conversation)!r}).to_pandas()
except ImportError as error:
    print(error, error.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"data frames need {missing}: pip install '.[pandas]' {missing}"


def test_a_replay_has_the_parts_of_the_references(replayed: ReplayReport) -> None:
    """Broken by: a part that code written for the reference asks for, a truth among the numbers."""
    assert replayed.coverage == {"capture_per_request": True, "per_request_records": 500}
    plain = ReplayReport(replayed)
    assert plain.coverage == {"capture_per_request": False, "per_request_records": 0}
    assert plain.planner is None
    assert ReplayReport({**replayed, "scaling": {"ticks": 3}}).planner == {"ticks": 3}
    assert replayed["partial"] is False and "partial" not in replayed.summary
    assert replayed.summary["completed_requests"] == 500 and replayed.summary["mean_ttft_ms"] > 0


def test_latencies_of_nothing_are_numbers(need: Any) -> None:
    """Broken by: columns of objects, which cannot be computed with, where no request ended."""
    need("pandas")
    with pytest.warns(wavetank.WavetankWarning, match="rejected"):
        none = wavetank.run_synthetic_trace_replay(
            1000, 10, 3, extra_engine_args={"num_gpu_blocks": 10, "block_size": 16}
        )
    frame = none.to_pandas()
    assert {kind.kind for kind in frame.dtypes} == {"f"} and frame.isna().all(axis=None)


def test_reports_travel(replayed: ReplayReport) -> None:
    """Broken by: a report that cannot go to another process, where sweeps make them."""
    sent = pickle.loads(pickle.dumps(ReplayReport(replayed)))
    assert sent == replayed and sent._repr_html_() == replayed._repr_html_()


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken by: a file that is emptied before it is written, a part that stays, or a mode that is lost."""
    path = tmp_path / "r.json"
    path.write_text("before")
    path.chmod(0o600)
    link = tmp_path / "link.json"
    link.symlink_to(path)

    def full(part: str, content: bytes) -> None:
        Path(part).write_bytes(content[:1])
        raise OSError(28, "No space left on device", part)

    with monkeypatch.context() as patch:
        patch.setattr(_files, "_fill", full)
        with pytest.raises(OSError, match="No space left on device: '.*link.json'"):
            Report({"a": 1}).save(link)
    assert path.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["link.json", "r.json"]
    Report({"a": 1}).save(link)
    assert json.loads(path.read_text()) == {"a": 1}
    assert (path.stat().st_mode & 0o777, link.is_symlink()) == (0o600, True)
    assert sorted(os.listdir(tmp_path)) == ["link.json", "r.json"]
