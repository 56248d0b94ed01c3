"""Sweeps on Ray give the rows of sweeps here: ray.py TRACE DIR. Prints a line for each check."""

import collections
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import ray

import wavetank
from wavetank import _ray

POINTS = 200
TRACE, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
SPEC = {
    "base": {"trace": TRACE, "trace_block_size": 512, "extra_engine_args": {"block_size": 16}},
    "axes": {
        "router_mode": ["round_robin", "kv_router"],
        "num_workers": [2, 3, 4, 5, 6],
        "extra_engine_args.num_gpu_blocks": [2048, 4096, 8192, 16384],
        "arrival_speedup_ratio": [1.0, 1.5, 2.0, 3.0, 4.0],
    },
    "pareto": {"minimize": ["p99_ttft_ms", "gpu_hours"]},
}
# Where workers say which process runs which job.
LOG = FOLDER / "started.txt"
ours = _ray.point


def point(job, stored):
    """Ours, and a line before and after it."""

    def say(word):
        with LOG.open("a") as log:
            log.write(f"{word} {os.getpid()} {hash_of(job)}\n")

    say("start")
    answer = ours(job, stored)
    say("end")
    return answer


def hash_of(job):
    import hashlib

    return hashlib.sha256(job.encode()).hexdigest()[:16]


def swept(name, **how):
    """A sweep into files of this name, and what they hold without times."""
    outputs = [FOLDER / f"{name}.json", FOLDER / f"{name}.csv"]
    report = wavetank.sweep(SPEC, output=outputs, fresh=True, **how)
    assert report["wall"]["points_run"] == POINTS, report["wall"]
    lines = outputs[0].read_text().splitlines()
    wall = next(at for at, line in enumerate(lines) if line.startswith('  "wall": '))
    end = next(at for at in range(wall, len(lines)) if lines[at].startswith("  }"))
    return "\n".join(lines[:wall] + lines[end + 1 :]), outputs[1].read_bytes()


def steps():
    """Words, processes and jobs of the log."""
    return [line.split() for line in LOG.read_text().splitlines()] if LOG.exists() else []


def kill_one():
    """Kills a worker that is at work, half-way; its process and job."""
    while len(steps()) < POINTS:
        time.sleep(0.01)
    while True:
        last = {process: (word, job) for word, process, job in steps()}
        for process, (word, job) in last.items():
            if word == "start":
                os.kill(int(process), signal.SIGKILL)
                return process, job
        time.sleep(0.001)


def check_killed(here):
    """A worker is killed while its point runs: the point is run again, and the rows are the same."""
    for attempt in range(5):
        LOG.unlink(missing_ok=True)
        killed = []
        killer = threading.Thread(target=lambda: killed.append(kill_one()))
        killer.start()
        there = swept("killed", executor="ray")
        killer.join()
        assert there == here, "rows differ after a worker was killed"
        started = collections.defaultdict(list)
        for word, process, job in steps():
            if word == "start":
                started[job].append(process)
        (process, job), runs = killed[0], started[killed[0][1]]
        # It may have ended between the look and the blow.
        if runs[0] == process and len(runs) > 1:
            again = [process for processes in started.values() for process in processes[1:]]
            print(f"ray, worker {process} killed: its point ran again in {runs[1]}, {len(again)} in all; same rows")
            return
    raise AssertionError("no worker was killed at work")


def check_growth(here):
    """Finished points are in their file while the sweep runs."""
    kept, seen = FOLDER / "ray.points.jsonl", []

    def look(done, total):
        seen.append((done, kept.read_text().count("\n") - 1))

    started = time.monotonic()
    assert swept("ray", executor="ray", progress=look) == here, "rows differ"
    seconds = time.monotonic() - started
    between = {lines for done, lines in seen if 0 < lines < POINTS}
    assert len(between) > 3 and all(done <= lines for done, lines in seen), seen
    processes = {process for word, process, job in steps()}
    assert len(processes) > 1 and len(folders()) >= len(processes), (processes, folders())
    print(f"ray: {POINTS} points in {len(processes)} processes, {seconds:.1f} s; .json and .csv are the local ones")
    print(f"ray: points.jsonl was seen at {len(between)} lengths between 0 and {POINTS} points")


def tables(folder):
    """A folder of kernel times that are worked out, not measured."""
    folder.mkdir(exist_ok=True)
    sizes = [(chunk, before, batch, length) for chunk in (0, 16, 1024) for before in (0, 16, 2048)
             for batch in (0, 1, 256) for length in (16, 1024, 8192)]
    sound = [(chunk, before, batch, length if batch else 0) for chunk, before, batch, length in sizes
             if (chunk or not before) and chunk + batch and (batch or length == 16)]
    rows = [f"{c},{k},{n},{kv},{1 + (c * k + n * kv) / 1000}" for c, k, n, kv in sound]
    for name, lines in {
        "attention": ["prefill_chunk,kv_prefill,n_decode,kv_decode,time_us", *rows],
        "dense": ["layer,tokens,time_us", "qkv_proj,1,2", "qkv_proj,2048,4096"],
        "per_sequence": ["layer,sequences,time_us", "sampler,1,3", "sampler,256,768"],
        "skew": ["regime,n,kp,kv_mean,t_mean_us,t_max_us,t_skew_us", "pure,256,0,100,10,20,10"],
    }.items():
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]))
    return folder


def check_inputs():
    """A folder of tables, and two traces that have the same bytes, are laid out as what they are."""
    twins = [FOLDER / "one.jsonl", FOLDER / "two.jsonl"]
    for twin in twins:
        twin.write_bytes(TRACE.read_bytes())
    shape = {"layers": 2, "hidden": 64, "max_num_seqs": 64}
    timing = {"name": "kernels", "path": tables(FOLDER / "tables"), **shape}
    base = {"trace_block_size": 512, "extra_engine_args": {"timing": timing}}
    spec = {"base": base, "axes": {"trace": twins, "num_workers": [2, 3]}}
    here, there = wavetank.sweep(spec), wavetank.sweep(spec, executor="ray")
    assert there.rows == here.rows and there["inputs"] == here["inputs"], "rows of other inputs differ"
    hashes = {entry["blake3"] for entry in here["inputs"]}
    assert len(here["inputs"]) == 3 and len(hashes) == 2, here["inputs"]
    print("ray: a folder of tables and two traces of the same bytes give the local rows")


def check_errors():
    """What is wrong with an input comes back as it is said here, at once."""
    broken = FOLDER / "broken.jsonl"
    lines = TRACE.read_text().splitlines()
    broken.write_text("\n".join([*lines[:10], "{}", *lines[10:]]))
    spec = {"base": {"trace": broken}, "axes": {"num_workers": [1, 2]}}
    told = []
    for executor in ("local", "ray"):
        LOG.unlink(missing_ok=True)
        try:
            wavetank.sweep(spec, executor=executor, threads=1)
        except wavetank.InputError as error:
            told.append(str(error))
    assert len(told) == 2 and told[0] == told[1] and f"{broken}:11" in told[0], told
    starts = [job for word, process, job in steps() if word == "start"]
    assert starts and len(starts) == len(set(starts)), "an error of ours was tried again"
    print("ray: a broken trace is the same InputError, with its own name and line, and is not tried again")


def check_interrupt():
    """Ctrl-C ends the sweep and its tasks, and what was done is kept."""
    LOG.unlink(missing_ok=True)

    def interrupt():
        while len(steps()) < 40:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    output = FOLDER / "left.csv"
    try:
        wavetank.sweep(SPEC, output=output, executor="ray", fresh=True)
        raise AssertionError("nothing was interrupted")
    except KeyboardInterrupt:
        pass
    time.sleep(1)
    begun = len(steps())
    time.sleep(1)
    assert len(steps()) == begun, "tasks begin after the end"
    kept = output.with_suffix(".points.jsonl").read_text().count("\n") - 1
    report = wavetank.sweep(SPEC, output=output, executor="ray")
    assert 0 < kept < POINTS and report["wall"]["points_run"] == POINTS - kept, (kept, report["wall"])
    print(f"ray, Ctrl-C: {kept} of {POINTS} points were kept, {POINTS - kept} run by the next sweep")


def folders():
    """Those of worker processes."""
    return set(Path(tempfile.gettempdir()).glob(f"{_ray.FOLDER}*"))


def main():
    before = folders()
    _ray.point = point
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    started = time.monotonic()
    here = swept("local")
    print(f"local: {POINTS} points on {os.cpu_count()} threads, {time.monotonic() - started:.1f} s")
    check_growth(here)
    check_killed(here)
    check_inputs()
    check_errors()
    check_interrupt()
    ray.shutdown()
    time.sleep(2)
    left = folders() - before
    assert not left, left
    print("ray: nothing is left of the inputs that workers laid out")


main()
