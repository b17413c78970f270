#!/usr/bin/env python3
"""A loopback stand-in for the W&B service that records what it is sent. Standard library only.

    wandb_server.py --log requests.jsonl [--port 0] [--state state.json]

prints its port, then serves until it is killed. Each request becomes a line of the log: method, path, body, and the
run's state is what the requests add up to. `GET /state` returns it, `GET /ill` what is left of the illness. `POST /control` makes the server ill:

    {"answer": 429, "times": 3, "retry_after": 1}    the next 3 requests get this status
    {"slow": 2.0}                                    every answer waits so many seconds
    {"cut": 2}                                       the next 2 connections are closed without an answer
"""
import argparse
import base64
import gzip
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
runs = {}  # "project/name" -> what the server knows of the run
ill = {"answer": 0, "times": 0, "retry_after": None, "slow": 0.0, "cut": 0}
STREAMS = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "events", "output.log": "output"}


def run_of(project, name):
    return runs.setdefault(f"{project}/{name}", {"upserts": 0, "config": {}, "history": {}, "events": {}, "output": {},
                                                 "summary": None, "files": {}, "complete": None, "exitcode": None,
                                                 "heartbeats": 0, "fields": {}})


def count(lines):
    return 1 + max(map(int, lines), default=-1)


def tail(lines):
    return json.dumps([lines[str(count(lines) - 1)]] if lines else [])


def bucket(name, project, run):
    config = json.dumps(run["config"])
    return {"id": "storage-" + name, "name": name, "displayName": run["fields"].get("displayName") or name,
            "description": None, "config": config, "summaryMetrics": run["summary"] or "{}", "sweepName": None,
            "historyLineCount": count(run["history"]), "eventsLineCount": count(run["events"]),
            "logLineCount": count(run["output"]), "historyTail": tail(run["history"]),
            "eventsTail": tail(run["events"]), "tags": [], "wandbConfig": json.dumps({"t": 1}),
            "project": {"id": "p", "name": project, "entity": {"id": "e", "name": "tester"}}}


def graphql(query, v, base):
    if "createRunFiles" in query:
        names = v.get("files") or []
        run = run_of(v.get("project") or v.get("projectName") or "uncategorized", v.get("run") or v.get("runName"))
        del run
        urls = [{"name": n, "uploadUrl": f"{base}/storage/{v.get('project') or v.get('projectName')}/"
                 f"{v.get('run') or v.get('runName')}/{n}"} for n in names]
        return {"createRunFiles": {"runID": "x", "uploadHeaders": ["X-Recorded:yes"], "files": urls}}
    if "upsertBucket" in query:
        project = v.get("project") or "uncategorized"
        name = v.get("name") or (v.get("id") or "").removeprefix("storage-")
        run = run_of(project, name)
        inserted = run["upserts"] == 0
        run["upserts"] += 1
        run["fields"].update({k: x for k, x in v.items() if x is not None})
        if v.get("config"):
            run["config"] = json.loads(v["config"])
        return {"upsertBucket": {"bucket": bucket(name, project, run), "inserted": inserted}}
    if "RunResumeStatus" in query or "missingOk" in query:
        project, name = v.get("project") or "uncategorized", v.get("name")
        known = runs.get(f"{project}/{name}")
        return {"model": {"id": "p", "name": project, "entity": {"id": "e", "name": "tester"},
                          "bucket": bucket(name, project, known) if known else None}}
    if "__type" in query or "IntrospectionQuery" in query:
        return {"QueryType": None, "MutationType": None, "__type": None}
    if "viewer" in query:
        return {"viewer": {"id": "v", "entity": "tester", "username": "tester", "flags": "{}",
                           "teams": {"edges": []}}, "serverInfo": None}
    return {}


def file_stream(project, name, body):
    run = run_of(project, name)
    for file, part in (body.get("files") or {}).items():
        if file == "wandb-summary.json":
            run["summary"] = part["content"][-1]
            continue
        kept = run[STREAMS[file]]
        for i, line in enumerate(part["content"]):
            kept[str(part["offset"] + i)] = line
    if not body.get("files") and body.get("complete") is None:
        run["heartbeats"] += 1
    if body.get("complete") is not None:
        run["complete"], run["exitcode"] = body["complete"], body.get("exitcode")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, value, headers=()):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for k, x in headers:
            self.send_header(k, x)
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while (n := int(self.rfile.readline().strip() or b"0", 16)) > 0:
                data += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def sick(self):
        with lock:
            if ill["cut"] > 0:
                ill["cut"] -= 1
                return "cut"
            if ill["times"] > 0:
                ill["times"] -= 1
                return "answer"
        return ""

    def key(self):
        auth = self.headers.get("Authorization", "")
        return base64.b64decode(auth[6:]).decode() if auth.startswith("Basic ") else ""

    def handle_one(self, data):
        path = self.path.split("?")[0]
        if path == "/graphql":
            asked = json.loads(data)
            with lock:
                answer = graphql(asked.get("query", ""), asked.get("variables") or {}, base)
            return self.send(200, {"data": answer})
        m = re.fullmatch(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream", path)
        if m:
            with lock:
                file_stream(m[2], m[3], json.loads(data))
            return self.send(200, {"exitcode": None, "limits": {}})
        m = re.fullmatch(r"/storage/([^/]+)/([^/]+)/(.+)", path)
        if m and self.command == "PUT":
            with lock:
                run_of(m[1], m[2])["files"][m[3]] = base64.b64encode(data).decode()
            return self.send(200, {})
        return self.send(404, {"error": "no such page"})

    def serve(self):
        data = self.body()
        if self.path == "/control":
            with lock:
                ill.update(json.loads(data))
            return self.send(200, {})
        if self.path == "/ill":  # what is left of the last /control
            return self.send(200, ill)
        if self.path == "/state":
            with lock:
                text = {"runs": json.loads(json.dumps(runs))}
            return self.send(200, text)
        if ill["slow"]:
            time.sleep(ill["slow"])
        sick = self.sick()
        shown = data.decode("utf-8", "replace") if self.command != "PUT" else f"{len(data)} bytes"
        with lock:
            log.write(json.dumps({"t": time.time(), "method": self.command, "path": self.path, "key": self.key(),
                                  "sick": sick, "body": shown}) + "\n")
            log.flush()
        if sick == "cut":
            self.close_connection = True
            return None
        if sick == "answer":
            extra = [("Retry-After", str(ill["retry_after"]))] if ill["retry_after"] is not None else []
            return self.send(ill["answer"], {"error": "not now"}, extra)
        return self.handle_one(data)

    do_GET = do_POST = do_PUT = do_HEAD = serve


args = argparse.ArgumentParser()
args.add_argument("--port", type=int, default=0)
args.add_argument("--log", required=True)
args.add_argument("--state", help="load the runs from this file, and write them there on SIGTERM")
args = args.parse_args()
log = open(args.log, "a")
if args.state and os.path.exists(args.state):
    runs = json.load(open(args.state))
server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
server.daemon_threads = True
base = f"http://127.0.0.1:{server.server_address[1]}"
print(server.server_address[1], flush=True)


def keep_state():
    while True:
        time.sleep(0.2)
        with lock:
            text = json.dumps(runs)
        with open(args.state + ".tmp", "w") as f:
            f.write(text)
        os.replace(args.state + ".tmp", args.state)


if args.state:
    threading.Thread(target=keep_state, daemon=True).start()
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
