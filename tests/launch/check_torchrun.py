#!/usr/bin/env python3
"""cohort launch beside torchrun itself: python3 check_torchrun.py build/cohort [seconds]. Needs a Python with torch.

1. A worker's environment, field by field, for three command lines.
2. A DDP script over gloo, unchanged: the same weights.
3. Time per worker with an empty script, alternating in one run.
Exit status 1 if anything differs, or if we are less than 20 times faster.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

cohort = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="check_torchrun_")
env = dict(os.environ, PYTHON_EXEC=sys.executable, TMPDIR=work)
env.pop("OMP_NUM_THREADS", None)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
COHORT = [cohort, "launch"]
failed = False

# What differs by nature: ports, random names; and, by design, who opens the store (docs/launch.md).
VARIES = {
    "MASTER_PORT": r"\d+",
    "TORCHELASTIC_RUN_ID": r"[0-9a-f-]{36}|none",
    "TORCHELASTIC_ERROR_FILE": r".*/[^/]+_[a-z0-9_]{8}/attempt_0/\d/error\.json",
    "_": r".*",
}
DESIGN = {"TORCHELASTIC_USE_AGENT_STORE": ("True", "False")}

SHOW = """import json, os, sys
with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as f: json.dump(dict(os.environ), f)
"""
DDP = """import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
torch.manual_seed(0)
m = DDP(torch.nn.Linear(8, 4))
o = torch.optim.SGD(m.parameters(), 0.1)
for i in range(10):
    o.zero_grad()
    m(torch.full((4, 8), float(dist.get_rank() + 1))).pow(2).mean().backward()
    o.step()
if dist.get_rank() == 0:
    open(sys.argv[1], "w").write(m.module.weight.detach().numpy().tobytes().hex())
dist.destroy_process_group()
"""


def path(name, text=None):
    p = os.path.join(work, name)
    if text is not None:
        with open(p, "w") as f:
            f.write(text)
    return p


def run(line):
    t = time.monotonic()
    r = subprocess.run(line, env=env, cwd=work, capture_output=True, text=True, timeout=300)
    if r.returncode != 0:
        print("FAILED", " ".join(line), r.returncode, r.stdout, r.stderr)
        sys.exit(1)
    return time.monotonic() - t


def environments(launcher, flags, name):
    import json
    out = path(name)
    os.makedirs(out, exist_ok=True)
    run(launcher + flags + [path("show.py", SHOW), out])
    return [json.load(open(os.path.join(out, r))) for r in sorted(os.listdir(out))]


def compare(flags, k):
    global failed
    theirs = environments(TORCHRUN, flags, f"t{k}")
    ours = environments(COHORT, flags, f"c{k}")
    bad = [] if len(theirs) == len(ours) else ["number of workers"]
    for rank, (t, c) in enumerate(zip(theirs, ours)):
        for key in sorted(set(t) | set(c)):
            a, b = t.get(key), c.get(key)
            same = a == b
            if key in VARIES and a is not None and b is not None:
                same = bool(re.fullmatch(VARIES[key], a) and re.fullmatch(VARIES[key], b))
            if key in DESIGN:
                same = (a, b) == DESIGN[key]
            if not same:
                bad.append(f"rank {rank} {key}: torchrun {a!r}, cohort {b!r}")
    print(f"environment {' '.join(flags)}: {'equal' if not bad else bad}")
    failed |= bool(bad)


compare(["--standalone", "--nproc-per-node=2"], 0)
compare(["--nproc_per_node", "3", "--max_restarts=2", "--role=trainer"], 1)
compare(["--nproc-per-node=2", "--master-addr=localhost", "--master-port=29871"], 2)

script = path("ddp.py", DDP)
for launcher, name in ((TORCHRUN, "wt"), (COHORT, "wc")):
    run(launcher + ["--standalone", "--nproc-per-node=2", script, path(name)])
same = open(path("wt")).read() == open(path("wc")).read()
print(f"DDP over gloo, 2 ranks, 10 steps: weights {'equal' if same else 'DIFFER'}")
failed |= not same

empty = path("empty.sh", "#!/bin/sh\n")
os.chmod(empty, 0o755)
n, times = 4, {"torchrun": [], "cohort": []}
for _ in range(3):
    times["torchrun"].append(run(TORCHRUN + ["--standalone", f"--nproc-per-node={n}", "--no-python", empty]))
    times["cohort"].append(run(COHORT + ["--standalone", f"--nproc-per-node={n}", "--no-python", empty]))
t, c = sorted(times["torchrun"])[1] / n, sorted(times["cohort"])[1] / n
print(f"empty script, {n} workers, per worker: torchrun {t * 1e3:.1f} ms, cohort {c * 1e3:.2f} ms, {t / c:.0f} times faster")
failed |= t / c < 20
subprocess.run(["rm", "-r", work])
sys.exit(failed)
