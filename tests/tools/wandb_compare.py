#!/usr/bin/env python3
"""Compares three uploads of the same training on a recording server (wandb_server.py), field by field.

    WANDB_BASE_URL=... WANDB_API_KEY=... wandb_compare.py PROJECT LIVE SYNCED

LIVE is the run that our uploader sent, SYNCED the run that `wandb sync` sent from our offline folder. The third is made
here: wandb's own client logs what LIVE has. Needs the package wandb.
"""
import json
import os
import sys
import urllib.request

import wandb

project, live_id, synced_id = sys.argv[1:]
LATER = ("_timestamp", "_runtime")  # differ between two trainings


def state():
    with urllib.request.urlopen(os.environ["WANDB_BASE_URL"] + "/state") as f:
        return json.load(f)["runs"]


def rows(run, drop=LATER):
    lines = [json.loads(run["history"][str(i)]) for i in range(len(run["history"]))]
    return [{k: v for k, v in line.items() if k not in drop} for line in lines]


def config(run):
    return {k: v for k, v in run["config"].items() if k != "_wandb"}


def timed(rows):  # figures that a clock measures differ between two trainings
    return [{k: v for k, v in r.items() if k != "train/data_wait"} for r in rows]


def check(what, a, b):
    if a != b:
        sys.exit(f"{what} differ:\n{json.dumps(a)[:2000]}\n{json.dumps(b)[:2000]}")


live = state()[f"{project}/{live_id}"]
fields = live["fields"]
own = wandb.init(project=project, id="own", group=fields["groupName"], name=fields["displayName"],
                 notes=fields["notes"], tags=fields["tags"], job_type=fields["jobType"],
                 config={k: v["value"] for k, v in config(live).items()},
                 settings=wandb.Settings(console="off", x_disable_stats=True))
own.define_metric("global_step")
own.define_metric("*", step_metric="global_step", step_sync=True)
for row in rows(live):
    own.log({k: v for k, v in row.items() if k != "_step"}, step=row["_step"])
own.finish()

runs = state()
live, synced, own = runs[f"{project}/{live_id}"], runs[f"{project}/{synced_id}"], runs[f"{project}/own"]
check("rows of the live upload and of wandb's client", rows(live), rows(own))
check("rows of the live upload and of wandb sync", timed(rows(live)), timed(rows(synced)))
check("configurations", config(live), config(own))
hide = {"run.dir", "id", "mode", "offline"}
a, b = config(live), config(synced)
check("keys of the configurations", sorted(a), sorted(b))
check("models", a["model"], b["model"])
for key in ("groupName", "displayName", "notes", "tags", "jobType", "host", "project"):
    check(key, fields.get(key), own["fields"].get(key))
    check(key, fields.get(key), synced["fields"].get(key))
for other in (own, synced):
    m = [x["_wandb"]["value"]["m"] for x in (live["config"], other["config"])]
    check("defined metrics", m[0], m[1])
    check("ends", (live["complete"], live["exitcode"]), (other["complete"], other["exitcode"]))
    check("keys of the summary", sorted(json.loads(live["summary"])), sorted(json.loads(other["summary"])))
    needed = {"wandb-metadata.json", "config.yaml", "wandb-summary.json"}
    check("files", needed - set(live["files"]), needed - set(other["files"]))
final = json.loads(live["summary"]), json.loads(own["summary"])
check("summaries", *({k: v for k, v in s.items() if k not in LATER + ("_wandb",)} for s in final))
events = [[sorted(json.loads(line)) for line in run["events"].values()] for run in (live, synced)]
check("names of figures", events[0][-1], events[1][-1])
print(f"{len(rows(live))} rows, {len(config(live))} groups of keys, {len(live['events'])} events, "
      f"{len(live['output'])} lines of output: the same")
