#!/usr/bin/env python3
"""The payments worker of the order example, on the standard library alone.

It takes payment.charge, payment.refund and ops.alert, and is meant to be read:
this file is the whole worker protocol (docs/workers.md) in one language.

    PERIGEE_URL=http://127.0.0.1:7474 python3 worker.py --id payments-1 --ledger bank.jsonl
"""

import argparse
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from urllib.parse import urlsplit

POLL_WAIT_S = 20
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.1, 2.0


def log(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


# --- One call of the API ------------------------------------------------------


class Refused(Exception):
    """The server understood the call and said no."""

    def __init__(self, status, code, message):
        super().__init__(f"{code}: {message}")
        self.status, self.code = status, code


class Server:
    """Calls the server over one kept-open connection for each thread."""

    def __init__(self, url, token=None):
        self.url = urlsplit(url)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = "Bearer " + token
        self.local = threading.local()

    def call(self, path, body, wait_s=0):
        """Makes a call until the server has answered it.

        Every call of the worker protocol may be repeated with the same body: a
        poll carries its poll_id, a result its token.
        """
        pause_most = BACKOFF_FIRST_S
        while True:
            try:
                return self.once(path, body, wait_s)
            except (OSError, http.client.HTTPException) as err:
                pause, why = 0.0, str(err) or type(err).__name__
            except Refused as err:
                # CONFLICT (409) says that others were faster, several times over.
                if err.status != 429 and err.status < 500 and err.code != "CONFLICT":
                    raise
                pause, why = self.local.retry_after, str(err)
            # Full jitter, so that workers do not all come back at the same moment.
            pause += random.uniform(0, pause_most)
            pause_most = min(2 * pause_most, BACKOFF_MOST_S)
            log(f"server away ({why}); {path} again in {pause:.1f} s")
            time.sleep(pause)

    def once(self, path, body, wait_s=0):
        conn = getattr(self.local, "conn", None)
        if conn is None:
            kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
            conn = self.local.conn = kind(self.url.netloc)
        conn.timeout = 30 + wait_s
        if conn.sock is not None:
            conn.sock.settimeout(conn.timeout)
        try:
            conn.request("POST", self.url.path.rstrip("/") + path, json.dumps(body), self.headers)
            answer = conn.getresponse()
            text = answer.read()
        except BaseException:
            conn.close()  # it is not known how far the call came: a new connection next time
            raise
        self.local.retry_after = float(answer.headers.get("Retry-After") or 0)
        if 200 <= answer.status < 300:
            return json.loads(text)
        try:
            error = json.loads(text)
            code, message = error["code"], error["message"]
        except (ValueError, KeyError, TypeError):
            code, message = f"HTTP_{answer.status}", "the answer is no Perigee error"
        raise Refused(answer.status, code, message)


# --- The worker ---------------------------------------------------------------


class TaskFailed(Exception):
    """A failure with a code that the workflow's definition may know."""

    def __init__(self, code, message, retryable=True):
        super().__init__(message)
        self.code, self.retryable = code, retryable


class Stopped(Exception):
    """Raised in the main thread by a signal while the worker is idle."""


class Worker:
    """Runs one task at a time; a second thread sends the heartbeats."""

    def __init__(self, server, worker_id, handlers):
        self.server, self.worker_id, self.handlers = server, worker_id, handlers
        self.lock = threading.Lock()  # guards session, token and cancelled
        self.session = None
        self.interval_s = 10.0
        self.token = None  # of the task under way
        self.cancelled = threading.Event()  # set when that task should stop
        self.idle = False
        self.stopping = False

    def run(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, self.on_signal)
        try:
            self.idle = True
            self.register(None)
            self.idle = False
            threading.Thread(target=self.heartbeats, daemon=True).start()
            task = None
            while task or not self.stopping:
                task = self.work(task) if task else self.poll()
        except Stopped:
            pass
        if self.session:
            # What is still held is handed out again at once, not after the time-out.
            try:
                self.server.once("/v1/workers/unregister", {"worker_session_id": self.session})
            except (OSError, http.client.HTTPException, Refused) as err:
                log(f"unregister: {err}")
        log("stopped")

    def on_signal(self, sig, _frame):
        """The first signal lets the task under way finish, the second ends the process."""
        signal.signal(sig, signal.SIG_DFL)
        self.stopping = True
        if self.idle:
            raise Stopped

    def register(self, unknown_session):
        """Opens a session in place of one that the server does not know."""
        with self.lock:
            if self.session != unknown_session:
                return  # the other thread was faster
            answer = self.server.call(
                "/v1/workers/register",
                {
                    "worker_id": self.worker_id,
                    "runtime": "python",
                    "contracts": [
                        {"task_name": name, "contract_version": version} for name, version in sorted(self.handlers)
                    ],
                },
            )
            self.session = answer["worker_session_id"]
            self.interval_s = answer["heartbeat_interval_ms"] / 1000
            for warning in answer.get("warnings", []):
                log(f"registration: {warning}")
            log(f"registered as {self.worker_id}")

    def poll(self):
        """Waits for a task. None: there is none yet."""
        session = self.session
        self.idle = True
        try:
            if self.stopping:
                return None  # the signal came just before this worker was idle
            answer = self.server.call(
                "/v1/workers/poll",
                {"worker_session_id": session, "poll_id": str(uuid.uuid4()), "wait_ms": POLL_WAIT_S * 1000},
                wait_s=POLL_WAIT_S,
            )
            if answer["tasks"]:
                return answer["tasks"][0]
            time.sleep(answer["next_poll_ms"] / 1000)
        except Refused as err:
            if err.code != "UNKNOWN_SESSION":
                raise
            self.register(session)
        finally:
            self.idle = False
        return None

    def work(self, task):
        """Runs a task, reports it, and gives the next one if the answer has one."""
        with self.lock:
            self.token = task["token"]
            self.cancelled.clear()
        again = ", handed out again" if task["redelivery"] else ""
        log(f"{task['step_id']} of {task['execution_id']}: {task['task_name']}, attempt {task['attempt']}{again}")
        path, result = self.execute(task)
        result["token"] = task["token"]
        if not self.stopping:
            result["next"] = {"worker_session_id": self.session}
        try:
            answer = self.server.call(path, result)
        except Refused as err:
            log(f"result refused: {err}")
            answer = {"accepted": True}
        if not answer["accepted"]:
            log(f"result not accepted: {answer.get('reason')}")
        with self.lock:
            self.token = None
        return answer.get("next")

    def execute(self, task):
        handler = self.handlers[task["task_name"], task["contract_version"]]
        try:
            return "/v1/tasks/complete", {"output": handler(task, self.cancelled)}
        except TaskFailed as err:
            log(f"{task['step_id']} failed: {err.code}: {err}")
            error = {"code": err.code, "message": str(err), "retryable": err.retryable}
        except Exception as err:  # whatever it was, the execution must hear of it
            log(f"{task['step_id']} failed: {err!r}")
            error = {"code": "HANDLER_ERROR", "message": f"{type(err).__name__}: {err}"}
        return "/v1/tasks/fail", {"error": error}

    def heartbeats(self):
        """Says what is held, and hears what should stop."""
        while True:
            time.sleep(self.interval_s)
            with self.lock:
                session, token = self.session, self.token
            try:
                answer = self.server.once(
                    "/v1/workers/heartbeat", {"worker_session_id": session, "tokens": [token] if token else []}
                )
            except Refused as err:
                if err.code == "UNKNOWN_SESSION":
                    self.register(session)
                continue
            except (OSError, http.client.HTTPException):
                continue  # the next beat is the repetition
            with self.lock:
                if self.token and self.token in answer["cancel"]:
                    self.cancelled.set()


# --- What this worker does ----------------------------------------------------


class Bank:
    """A payment provider: it remembers idempotency keys, as real ones do.

    Its book is a file of JSON lines, so that a charge that was made before this
    process was killed is found again and not made a second time.
    """

    def __init__(self, path):
        self.path = path
        self.book = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                self.book = {entry["key"]: entry for entry in map(json.loads, lines)}

    def once(self, key, **entry):
        """Enters something under a key. True: it is new."""
        if key in self.book:
            return self.book[key], False
        entry = {"key": key, "id": f"{entry['action']}-{len(self.book) + 1}", **entry}
        with open(self.path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        self.book[key] = entry
        return entry, True


def handlers(bank):
    def charge(task, cancelled):
        order, amount, card = (task["input"][name] for name in ("order", "amount", "card"))
        if card == "tok_declined":
            raise TaskFailed("CARD_DECLINED", f"the bank declined {card}", retryable=False)
        entry, new = bank.once(task["idempotency_key"], action="charge", order=order, amount=amount)
        if not new:
            log(f"the bank knows this key: {entry['id']} was made before, nothing is charged again")
        elif card == "tok_slow_bank":
            log(f"{entry['id']} of {amount}: the bank takes its time to confirm")
            if cancelled.wait(3):
                raise TaskFailed("CANCELLED", "stopped waiting for the bank", retryable=False)
        log(f"charged {amount} for {order}: {entry['id']}")
        return {"charge": entry["id"]}

    def refund(task, _cancelled):
        entry, _ = bank.once(
            task["idempotency_key"], action="refund", order=task["input"]["order"], charge=task["input"]["charge"]
        )
        log(f"refunded {task['input']['charge']}: {entry['id']}")
        return {}

    def alert(task, _cancelled):
        bank.once(task["idempotency_key"], action="alert", order=task["input"]["order"], text=task["input"]["text"])
        log(f"ALERT {task['input']['text']}")
        return {}

    return {
        ("payment.charge", "1.0.0"): charge,
        ("payment.refund", "1.0.0"): refund,
        ("ops.alert", "1.0.0"): alert,
    }


def main():
    parser = argparse.ArgumentParser(description="Perigee order example: the payments worker")
    parser.add_argument("--server", default=os.environ.get("PERIGEE_URL", "http://127.0.0.1:7474"))
    parser.add_argument("--id", default="payments-1", help="the worker's name in histories")
    parser.add_argument("--ledger", default="bank.jsonl", help="the bank's book, a file of JSON lines")
    args = parser.parse_args()
    server = Server(args.server, os.environ.get("PERIGEE_TOKEN"))
    Worker(server, args.id, handlers(Bank(args.ledger))).run()


if __name__ == "__main__":
    main()
