#!/usr/bin/env python3
"""`cohort launch` beside torchrun: seconds for an empty script, alternating in one run. One JSON object out.

    launch.py COHORT [--workers 4 16] [--runs 3]       # with a Python that has torch

Each time is that of a whole command, divided by the number of workers; results are medians. The script is an empty
shell script, so the time is the launcher's. `load` is the load average of the machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def timed(line, cwd):
    began = time.monotonic()
    done = subprocess.run(line, cwd=cwd, env=dict(os.environ, TMPDIR=cwd, OMP_NUM_THREADS="1"), capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def measure(cohort, workers, runs):
    launchers = {"torchrun": [sys.executable, "-m", "torch.distributed.run"],
                 "cohort": [os.path.abspath(cohort), "launch"]}
    took = {name: [] for name in launchers}
    with tempfile.TemporaryDirectory() as cwd:
        script = os.path.join(cwd, "empty.sh")
        with open(script, "w") as f:
            f.write("#!/bin/sh\n")
        os.chmod(script, 0o755)
        for _ in range(runs):
            for name, line in launchers.items():
                options = ["--standalone", f"--nproc-per-node={workers}", "--no-python", script]
                took[name].append(timed(line + options, cwd))
    ms = {name: 1e3 * statistics.median(t) / workers for name, t in took.items()}
    return {"workers": workers, "runs": runs, "torchrun_ms_per_worker": round(ms["torchrun"], 2),
            "cohort_ms_per_worker": round(ms["cohort"], 3), "times_faster": round(ms["torchrun"] / ms["cohort"], 1)}


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cohort")
    p.add_argument("--workers", type=int, nargs="+", default=[4])
    p.add_argument("--runs", type=int, default=3)
    a = p.parse_args()
    before = os.getloadavg()[0]
    rows = [measure(a.cohort, n, a.runs) for n in a.workers]
    print(json.dumps({"bench": "launch", "cpus": os.cpu_count(), "load": [before, os.getloadavg()[0]], "rows": rows}))
