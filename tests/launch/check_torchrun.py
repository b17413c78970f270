#!/usr/bin/env python3
"""cohort launch beside torchrun itself: python3 check_torchrun.py build/cohort [seconds]. Needs a Python with torch.

1. A worker's environment, field by field, for three command lines on one host and two on two.
2. A DDP script over gloo, unchanged, on one host and on two: the same weights.
3. Time per worker with an empty script, alternating in one run.
The two hosts are network namespaces, made and removed here (left out, with a line, where that is not allowed).
Exit status 1 if anything differs, or if we are less than 20 times faster.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

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
OURS = {"COHORT_LAUNCHER"}  # marks what belongs to a launcher; torchrun has no such thing
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
    r = subprocess.run(line, env=env, cwd=work, capture_output=True, text=True, timeout=300)
    if r.returncode != 0:
        print("FAILED", " ".join(line), r.returncode, r.stdout, r.stderr)
        sys.exit(1)


def run_on(hosts, launcher, flags, words):
    """The line on every host at once, {i}, {first} and {addr} filled in."""
    lines = [["ip", "netns", "exec", h] + launcher + [f.format(i=i, first=int(i == 0), addr=f"10.78.0.{i + 1}") for f in flags] + words
             for i, h in enumerate(hosts)]
    running = [subprocess.Popen(line, env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
               for line in lines]
    for line, p in zip(lines, running):
        text, _ = p.communicate(timeout=300)
        if p.returncode != 0:
            print("FAILED", " ".join(line), p.returncode, text)
            sys.exit(1)


def environments(launcher, flags, name, hosts):
    out = path(name)
    os.makedirs(out, exist_ok=True)
    words = [path("show.py", SHOW), out]
    run_on(hosts, launcher, flags, words) if hosts else run(launcher + flags + words)
    return [json.load(open(os.path.join(out, r))) for r in sorted(os.listdir(out))]


def compare(flags, k, hosts=None):
    global failed
    theirs = environments(TORCHRUN, flags, f"t{k}", hosts)
    ours = environments(COHORT, flags, f"c{k}", hosts)
    bad = [] if len(theirs) == len(ours) else ["number of workers"]
    for rank, (t, c) in enumerate(zip(theirs, ours)):
        for key in sorted((set(t) | set(c)) - OURS):
            a, b = t.get(key), c.get(key)
            same = a == b
            if not same and key in VARIES and a is not None and b is not None:
                same = bool(re.fullmatch(VARIES[key], a) and re.fullmatch(VARIES[key], b))
            if key in DESIGN:
                same = (a, b) == DESIGN[key]
            if not same:
                bad.append(f"rank {rank} {key}: torchrun {a!r}, cohort {b!r}")
    print(f"environment{' on two hosts' if hosts else ''} {' '.join(flags)}: {'equal' if not bad else bad}")
    failed |= bool(bad)


@contextlib.contextmanager
def two_hosts():
    """Two namespaces with a cable between them, 10.78.0.1 and 10.78.0.2; none where they cannot be made."""
    names = [f"check-{os.getpid()}-{i}" for i in (0, 1)]
    made = []

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for i, name in enumerate(names):
            ip("-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except (OSError, subprocess.CalledProcessError) as e:
        print("two hosts: LEFT OUT, no network namespaces here:", e)
        yield None
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name])


def compare_ddp(flags, hosts=None):
    global failed
    script = path("ddp.py", DDP)
    for launcher, name in ((TORCHRUN, "wt"), (COHORT, "wc")):
        words = [script, path(name)]
        if launcher is COHORT:  # which finds the interface by itself
            env.pop("GLOO_SOCKET_IFNAME", None)
        run_on(hosts, launcher, flags, words) if hosts else run(launcher + flags + words)
    same = open(path("wt")).read() == open(path("wc")).read()
    print(f"DDP over gloo, 10 steps, {len(hosts) if hosts else 1} host(s): weights {'equal' if same else 'DIFFER'}")
    failed |= not same


compare(["--standalone", "--nproc-per-node=2"], 0)
compare(["--nproc_per_node", "3", "--max_restarts=2", "--role=trainer"], 1)
compare(["--nproc-per-node=2", "--master-addr=localhost", "--master-port=29871"], 2)

compare_ddp(["--standalone", "--nproc-per-node=2"])

with two_hosts() as hosts:
    if hosts:
        env["COHORT_TOKEN"] = subprocess.run([cohort, "token"], capture_output=True, text=True, check=True).stdout.strip()
        env["GLOO_SOCKET_IFNAME"] = "eth0"
        static = ["--nnodes=2", "--nproc-per-node=2", "--node-rank={i}", "--master-addr=10.78.0.1", "--master-port=29871"]
        c10d = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-id=7", "--rdzv-backend=c10d", "--rdzv-endpoint=10.78.0.1:29872",
                "--rdzv-conf=is_host={first}", "--local-addr={addr}"]  # torchrun does not see that the address is its own
        VARIES["MASTER_ADDR"] = r"10\.78\.0\.[12]"  # which host is the first is torchrun's choice
        DESIGN["COHORT_TOKEN"] = (env["COHORT_TOKEN"], None)  # ours keep it from the workers
        compare(static, 3, hosts)
        compare(c10d, 4, hosts)
        compare_ddp(c10d, hosts)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import launch

r = launch.measure(cohort, workers=4, runs=3)
print(f"empty script, 4 workers, per worker: torchrun {r['torchrun_ms_per_worker']} ms, cohort {r['cohort_ms_per_worker']} ms, "
      f"{r['times_faster']:.0f} times faster")
failed |= r["times_faster"] < 20
subprocess.run(["rm", "-r", work])
sys.exit(failed)
