"""What the soaks share: the program as a child, its resource use, and a plain HTTP client."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading


class Program:
    """`weir` with the given arguments, ended with this object. `doors`: the ports by name; `before`: a command prefix."""

    def __init__(self, weir, words, doors, stderr=subprocess.DEVNULL, before=()):
        self.child = subprocess.Popen([*before, weir, *words], stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.ports = {}
        for line in self.child.stdout:
            if line.startswith("listening "):
                _, door, address = line.split()[:3]
                self.ports[door] = int(address.rsplit(":", 1)[1])
            if all(door in self.ports for door in doors):
                # Its further output, the delivered messages, must be consumed.
                self.reader = threading.Thread(target=self.child.stdout.read, daemon=True)
                self.reader.start()
                return
        sys.exit(f"weir {words[0]} did not start")

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.reader.join()
        self.child.stdout.close()

    def close(self):
        self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(timeout=60)
        self.reader.join()
        self.child.stdout.close()
        return code

    def holds(self):
        """Resident memory in MiB, open descriptors, threads."""
        status = {}
        with open(f"/proc/{self.child.pid}/status") as file:
            for line in file:
                name, value = line.split(":", 1)
                status[name] = value.split()
        descriptors = len(os.listdir(f"/proc/{self.child.pid}/fd"))
        return int(status["VmRSS"][0]) / 1024, descriptors, int(status["Threads"][0])


class Client:
    """Sends requests over one connection. Raises OSError or HTTPException when the service is gone."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content[:1] in (b"{", b"[") else content

    def close(self):
        self.connection.close()


GONE = (OSError, http.client.HTTPException)
