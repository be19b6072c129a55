"""A worker that does not poll: Perigee calls it with each task. See docs/push.md."""

import hashlib
import hmac
import json
import os
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = os.environ.get("PERIGEE_URL", "http://127.0.0.1:7474")
SECRET = os.environ["PERIGEE_SECRET_MAILER"]
TOKEN = os.environ.get("PERIGEE_TOKEN")
MAX_BODY = 2 << 20


def verify(secret, headers, body, now):
    """Tell whether a call comes from who shares the secret, and lately."""
    timestamp = headers.get("perigee-timestamp", "")
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > 300:
        return False
    mac = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return hmac.compare_digest("v1=" + mac.hexdigest(), headers.get("perigee-signature", ""))


def welcome(task):
    """Do a task: give an output, or raise."""
    if (task["task_name"], task["contract_version"]) != ("mail.welcome", "1.0.0"):
        raise ValueError("this worker does mail.welcome@1.0.0")
    return {"text": f"Welcome, {task['input']['name']}!"}


def report(path, message):
    headers = {"content-type": "application/json"}
    if TOKEN:
        headers["authorization"] = "Bearer " + TOKEN
    request = urllib.request.Request(SERVER + path, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()


class Worker(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(min(length, MAX_BODY))
        if not verify(SECRET, self.headers, body, time.time()):
            self.send_error(401, "the signature is missing, wrong or old")
            return
        # The answer says that the call arrived, the report how the task went:
        # any error here has the server call again.
        try:
            self.work(json.loads(body))
        except OSError as fault:
            self.send_error(502, "the report did not arrive", f"{SERVER}: {fault}")
            return
        self.send_response(204)
        self.end_headers()

    def work(self, task):
        try:
            output = welcome(task)
        except (KeyError, TypeError, ValueError) as fault:
            error = {"code": "CANNOT_GREET", "message": repr(fault), "retryable": False}
            report("/v1/tasks/fail", {"token": task["token"], "error": error})
        else:
            report("/v1/tasks/complete", {"token": task["token"], "output": output})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, _, port = (sys.argv[1:] or ["127.0.0.1:8900"])[0].rpartition(":")
    with ThreadingHTTPServer((host, int(port)), Worker) as server:
        print("waiting for calls on http://%s:%d/" % server.server_address, flush=True)
        server.serve_forever()
