"""TensorBoard reads our event files: its EventAccumulator, and its server over HTTP.

    check_tensorboard.py values FOLDER RECORD     every scalar of events.jsonl, as a float32, bit for bit
    check_tensorboard.py cuts FOLDER              the newest file cut at many bytes: read up to there, no error
    check_tensorboard.py server LOGDIR RUN...     lists the runs; scalars, images, text, histograms, hparams as JSON

Needs the package tensorboard (2.21 was used). Prints one line; exit status 1 if something differs.
"""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ALL = {k: 0 for k in ["scalars", "tensors", "images", "histograms", "compressedHistograms", "audio"]}


def bits(x):
    return struct.pack("<f", x)


def scalars(folder):
    """(step, tag) -> its values, and how many of them were there more than once. system/... is measured by the clock:
    a step that takes long has several."""
    acc = EventAccumulator(folder, size_guidance=ALL)
    acc.Reload()
    got, twice = {}, 0
    for tag in acc.Tags()["scalars"]:
        for event in acc.Scalars(tag):
            twice += (event.step, tag) in got and not tag.startswith("system/")
            got.setdefault((event.step, tag), []).append(event.value)
    return got, twice


def record(path):
    """The last value of each (step, name). What a start recorded past the step that the next one continued from is
    done again by that one, and counts no more."""
    want = {}
    for line in open(path, errors="replace"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("name") == "run_start":
            want = {k: v for k, v in want.items() if k[0] <= event["step"]}
        elif "value" in event and "step" in event:
            want[(event["step"], event["name"])] = float(event["value"])
    return want


def values(folder, path):
    got, twice = scalars(folder)
    want = record(path)
    other = [k for k in want if k not in got or bits(got[k][-1]) != bits(want[k])]
    extra = [k for k in got if k not in want]
    print(f"{len(want)} values, {len(other)} missing or other {other[:3]}, {len(extra)} extra {extra[:3]}, {twice} twice")
    return not other and not extra and not twice and len(want) > 100


def cuts(folder):
    newest = sorted(glob.glob(folder + "/*tfevents*"))[-1]
    whole, _ = scalars(folder)
    size, before, n = os.path.getsize(newest), 0, 0
    for cut in list(range(0, 400)) + list(range(400, size, max(1, size // 150))) + [size]:
        with tempfile.TemporaryDirectory() as there:
            shutil.copytree(folder, there + "/t")
            os.truncate(there + "/t/" + os.path.basename(newest), cut)
            got, _ = scalars(there + "/t")
        wrong = [k for k in got if k in whole and list(map(bits, got[k])) != list(map(bits, whole[k]))[:len(got[k])]]
        if wrong or (cut == size and got != whole and not any(v != v for all in whole.values() for v in all)):
            print(f"cut at {cut}: {wrong[:3]}")
            return False
        n += 1
    print(f"{n} cuts of {size} bytes read")
    return True


class Server:
    def __init__(self, logdir):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--host", "127.0.0.1", "--port", "0"],
            stderr=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                self.url = found.group(0)
                break

    def get(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=body and json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"} if body else {})
        return urllib.request.urlopen(request, timeout=30).read()

    def json(self, path, body=None):
        return json.loads(self.get(path, body))


def server(logdir, runs):
    s = Server(logdir)
    try:
        said = {"runs": s.json("/data/runs")}
        for _ in range(100):
            if set(runs) <= set(said["runs"]):
                break
            said["runs"] = s.json("/data/runs")
        run = runs[0]
        tags = s.json("/data/plugin/scalars/tags")[run]
        points = s.json(f"/data/plugin/scalars/scalars?run={run}&tag=val%2Floss")
        texts = s.json("/data/plugin/text/tags")[run]
        config = s.json(f"/data/plugin/text/text?run={run}&tag=config")
        sessions = s.json("/data/plugin/hparams/session_groups", {
            "experimentName": "", "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING",
                                                       "STATUS_UNKNOWN"],
            "colParams": [{"metric": {"group": "", "tag": "val/loss"}, "order": "ORDER_ASC"}], "startIndex": 0,
            "sliceSize": 100})
        group = [g for g in sessions["sessionGroups"] if g["sessions"][0]["name"] == run][0]
        said.update(scalars=len(tags), val_loss=len(points), texts=texts, hparams=len(group["hparams"]),
                    lr=group["hparams"].get("optim.lr"), status=group["sessions"][0].get("status"),
                    metric=[m for m in group["metricValues"] if m["name"]["tag"] == "val/loss"][:1])
        ok = set(runs) <= set(said["runs"]) and "val/loss" in tags and points and "config" in texts
        ok = ok and "optim" in config[0]["text"] and said["lr"] and said["metric"]
        images = s.json("/data/plugin/images/tags").get(run, {})
        if images:
            tag = sorted(images)[0]
            shots = s.json(f"/data/plugin/images/images?run={run}&tag={tag}&sample=0")
            picture = s.get("/data/plugin/images/individualImage?" + shots[0]["query"])
            said.update(images=sorted(images)[:3], picture=len(picture))
            ok = ok and picture[:4] == b"\x89PNG"
        histograms = s.json("/data/plugin/histograms/tags").get(run, {})
        if histograms:
            tag = sorted(histograms)[0]
            said.update(histograms=len(histograms),
                        buckets=len(s.json(f"/data/plugin/histograms/histograms?run={run}&tag={tag}")[0][2]))
        print(json.dumps(said))
        return bool(ok)
    finally:
        s.process.terminate()
        s.process.wait()


what, *rest = sys.argv[1:]
good = values(*rest) if what == "values" else cuts(*rest) if what == "cuts" else server(rest[0], rest[1:])
sys.exit(0 if good else 1)
