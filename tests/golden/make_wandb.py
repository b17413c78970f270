#!/usr/bin/env python3
"""Makes wandb.json: records of a transaction log, serialised by wandb's own protocol buffers.

    pip install wandb==0.31.0; python3 tests/golden/make_wandb.py > tests/golden/wandb.json

tests/wandb/test_records.c builds the same records with our writer and compares the bytes.
"""
import json

from wandb.proto import wandb_internal_pb2 as pb

V = "0.31.0"
records = []


def add(name, r):
    r.num = len(records) + 1
    records.append({"name": name, "hex": r.SerializeToString(deterministic=True).hex()})


def telemetry(t):
    t.cli_version, t.core_version, t.platform = V, V, "linux-x86_64"


def stamp(t, seconds, nanos):
    t.seconds, t.nanos = seconds, nanos


r = pb.Record()
r.header.version_info.producer, r.header.version_info.min_consumer = V + "+cohort", "0.70.0"
add("header", r)

r = pb.Record()
r.run.run_id, r.run.entity, r.run.project = "abcd1234", "team", "digits"
for key, value in (("lr", "0.1"), ("model", '{"hidden":128,"name":"cnn"}')):
    item = r.run.config.update.add()
    item.key, item.value_json = key, value
r.run.run_group, r.run.job_type, r.run.display_name, r.run.notes = "g1", "train", "first", "a \u00e9 note"
r.run.tags.extend(["a", "b"])
r.run.sweep_id, r.run.host = "sw", "node1"
stamp(r.run.start_time, 1794921674, 500000000)
telemetry(r.run.telemetry)
r.run.git.remote_url, r.run.git.commit = "https://example.org/x.git", "0123abc"
add("run", r)

r = pb.Record()
r.environment.os, r.environment.program, r.environment.root = "Linux", "cohort", "/root"
r.environment.host, r.environment.executable, r.environment.writer_id = "node1", "/usr/bin/cohort", "w1"
r.environment.cpu_count = r.environment.cpu_count_logical = 200
stamp(r.environment.started_at, 1794921674, 500000000)
add("environment", r)

r = pb.Record()
telemetry(r.telemetry)
add("telemetry", r)

r = pb.Record()
r.metric.name, r.metric.options.defined = "global_step", True
add("metric", r)

r = pb.Record()
r.metric.glob_name, r.metric.step_metric = "*", "global_step"
r.metric.options.step_sync = r.metric.options.defined = True
add("metric", r)

r = pb.Record()
for key, value in (("train/loss", "0.25"), ("val/acc", "NaN"), ("_step", "300")):
    item = r.history.item.add()
    item.nested_key.append(key)
    item.value_json = value
r.history.step.num = 300
add("history", r)

r = pb.Record()
for key, value in (("train/loss", "0.25"), ("val/acc", "NaN"), ("_step", "300")):
    item = r.summary.update.add()
    item.nested_key.append(key)
    item.value_json = value
item = r.summary.update.add()
item.nested_key.extend(["_wandb", "runtime"])
item.value_json = "7"
add("summary", r)

r = pb.Record()
stamp(r.stats.timestamp, 1794921700, 250000000)
item = r.stats.item.add()
item.key, item.value_json = "gpu.0.gpu", "99.5"
add("stats", r)

r = pb.Record()
r.output_raw.output_type = pb.OutputRawRecord.STDOUT
stamp(r.output_raw.timestamp, 1794921700, 0)
r.output_raw.line = "hello\n"
add("output", r)

r = pb.Record()
f = r.files.files.add()
f.path, f.type = "media/images/x.png", pb.FilesItem.MEDIA
add("file", r)

r = pb.Record()
item = r.config.update.add()
item.key, item.value_json = "lr", "0.2"
add("config", r)

r = pb.Record()
r.exit.exit_code, r.exit.runtime = 1, 26
add("exit", r)
r = pb.Record()
r.final.SetInParent()
add("final", r)
r = pb.Record()
r.footer.SetInParent()
add("footer", r)
print(json.dumps({"wandb": V, "records": records}, indent=1))
