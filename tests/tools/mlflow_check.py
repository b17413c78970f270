#!/usr/bin/env python3
"""Compares a run on an MLflow server with the record of its run folder. Standard library only.

    mlflow_check.py http://127.0.0.1:PORT RUN STATUS

Every scalar of events.jsonl (the first of a step and name; all of system/...) must be in the metric's history, with its
step and value; every key of the configuration must be a parameter; config.yaml and train.log must be artefacts.
"""
import json
import math
import re
import sys
import urllib.parse
import urllib.request

base, folder, status = sys.argv[1:]
run_id = json.load(open(f"{folder}/mlflow.json"))["run_id"]


def get(path, **query):
    with urllib.request.urlopen(f"{base}/api/2.0/{path}?{urllib.parse.urlencode(query)}") as f:
        return json.load(f)


def number(x):
    return float(x) if not isinstance(x, str) else float(x.replace("Infinity", "inf"))


want, config, seen = {}, {}, set()
for line in open(f"{folder}/events.jsonl"):
    v = json.loads(line)
    if v["name"] == "run_start" and not config:
        config = v["config"]
    if "value" not in v or "step" not in v:
        continue
    if not v["name"].startswith("system/") and (v["step"], v["name"]) in seen:
        continue
    seen.add((v["step"], v["name"]))
    want.setdefault(re.sub(r"[^A-Za-z0-9_\-. /:]", "_", v["name"]), []).append(
        (v["step"], number(v["value"]), int(v["t"] * 1000)))

run = get("mlflow/runs/get", run_id=run_id)["run"]
assert run["info"]["status"] == status, run["info"]
params = {p["key"]: p["value"] for p in run["data"]["params"]}
for key, value in config.items():
    text = value if isinstance(value, str) else json.dumps(value)
    assert key in params, key
    same = params[key] == text
    if not same and isinstance(value, float):
        same = float(params[key]) == value
    assert same, (key, params[key], text)
values = 0
for name, points in want.items():
    got, token = [], None
    while True:
        page = get("mlflow/metrics/get-history", run_id=run_id, metric_key=name, max_results=1000,
                   **({"page_token": token} if token else {}))
        got += [(int(m.get("step", 0)), number(m["value"]), int(m["timestamp"])) for m in page.get("metrics", [])]
        token = page.get("next_page_token")
        if not token:
            break
    key = lambda p: (p[0], p[2], math.isnan(p[1]), p[1])  # noqa: E731
    a, b = sorted(set(points), key=key), sorted(set(got), key=key)
    assert len(a) == len(b) and all(x[0] == y[0] and (x[1] == y[1] or x[1] != x[1]) and abs(x[2] - y[2]) <= 1
                                    for x, y in zip(a, b)), (name, a[:3], b[:3], len(a), len(b))
    values += len(a)
files = {f["path"] for f in get("mlflow/artifacts/list", run_id=run_id).get("files", [])}
assert {"config.yaml", "train.log"} <= files, files
print(f"{values} values of {len(want)} metrics, {len(config)} parameters, {len(files)} files")
