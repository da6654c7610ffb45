#!/usr/bin/env python3
"""Whatever a real server serves as a limited page is counted as that page.

Usage: targets_test.py WEIR-PROGRAM [UPSTREAM…]

A client that has used up its limit for /v1/pay (and for everything under /v1/files/) repeats the request in thousands of
spellings, through `weir proxy` and through nginx with auth_request. A spelling that gets the page bypasses the limit.
"""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from spellings import spellings  # noqa: E402

HOME = os.path.join(HERE, "..", "..", "..", "build", "upstreams")
SERVERS = os.path.join(HERE, "upstreams")
POLICIES = """
policies:
  - name: pay
    match: { ip: "*", route: /v1/pay }
    quota: { fixed_window: { limit: 1, window: 100d } }
  - name: files
    match: { ip: "*", route: "/v1/files/*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
  - name: rest
    match: { ip: "*", route: "*" }
    quota: { fixed_window: { limit: 1000, window: 100d } }
"""
PAGES = {"/v1/pay": b"PAY", "/v1/files/a": b"FILES"}


class Process:
    """A program that ends with the test, and prints its port."""

    def __init__(self, arguments, word, environment=None):
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        for line in self.process.stdout:
            if line.startswith(word):
                self.port = int(line.rsplit(":", 1)[-1].split()[-1])
                return
        raise RuntimeError(f"{arguments[0]} did not start")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=120)
        self.process.stdout.close()


class Nginx:
    """nginx with one server block, in a separate folder."""

    def __init__(self, folder, name, server):
        self.port = free_port()
        root = os.path.join(folder, name)
        os.makedirs(root)
        path = os.path.join(root, "nginx.conf")
        with open(path, "w") as file:
            file.write(f"""daemon off; master_process off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u;
  scgi_temp_path {root}/s;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{self.port}; {server} }}
}}""")
        self.process = subprocess.Popen(["nginx", "-e", f"{root}/error.log", "-c", path])
        wait_for_port(self.port)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=120)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_port(port):
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Client:
    """Sends targets unchanged and reads complete answers."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.rest = b""

    def get(self, target, client):
        request = f"GET {target} HTTP/1.1\r\nHost: host\r\nX-Forwarded-For: {client}\r\n\r\n".encode("latin-1")
        for last in (False, True):
            try:
                if self.socket is None:
                    self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=120)
                    self.rest = b""
                self.socket.sendall(request)
                return self.read()
            except (ConnectionError, EOFError):
                # The server may have closed an idle connection; the second time, closing counts as its answer.
                self.close()
                if last:
                    return 0, b""

    def read(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
        status = int(head.split(b" ", 2)[1])
        body = b""
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            while True:
                while b"\r\n" not in self.rest:
                    self.more()
                size, self.rest = self.rest.split(b"\r\n", 1)
                body += self.take(int(size, 16))
                self.take(2)
                if int(size, 16) == 0:
                    break
        elif status not in (204, 304):
            body = self.take(int(fields.get(b"content-length", b"0")))
        if fields.get(b"connection", b"").strip() == b"close":
            self.close()
        return status, body

    def take(self, count):
        while len(self.rest) < count:
            self.more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError
        self.rest += piece

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None


def nginx_upstream(folder):
    return Nginx(folder, "upstream", 'location = /v1/pay { return 200 PAY; } location /v1/files/ { return 200 FILES; }')


def go_upstream(folder):
    program = os.path.join(folder, "mux")
    subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(SERVERS, "mux"), check=True,
                   env={**os.environ, "GOFLAGS": "-mod=mod"})
    return Process([program], "port")


def node_upstream(name):
    return lambda folder: Process(["node", os.path.join(SERVERS, name)], "port",
                                  {"NODE_PATH": os.path.join(HOME, "node_modules")})


def python_upstream(name):
    return lambda folder: Process([sys.executable, os.path.join(SERVERS, name)], "port",
                                  {"PYTHONPATH": os.path.join(HOME, "python")})


UPSTREAMS = {
    "nginx": ("nginx", nginx_upstream),
    "express": ("node", node_upstream("express_server.js")),
    "node-url": ("node", node_upstream("url_server.js")),
    "go-mux": ("go", go_upstream),
    "flask": ("python3", python_upstream("flask_server.py")),
    "normalizing": ("python3", python_upstream("normalizing_server.py")),
}


def attack(name, port, count):
    """Counts the spellings that got a page they should not have, and prints them."""
    client = Client(port)
    numbers = itertools.count(1)
    passed, tried, refused = [], 0, 0
    for page, text in PAGES.items():
        for spelling in spellings(page, seed=14, count=count):
            number = next(numbers)
            address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            first = client.get(page, address)
            if first != (200, text):
                raise RuntimeError(f"{name}: {page} answered {first}")
            status, body = client.get(spelling, address)
            tried += 1
            refused += status in (400, 403, 429, 500)
            if status == 200 and body == text:
                passed.append(spelling)
    client.close()
    print(f"{name}: {tried} spellings, {refused} refused or counted, {len(passed)} around the limit")
    for spelling in passed[:20]:
        print(f"  {spelling!r}")
    return len(passed)


def through_proxy(weir, folder, upstream, name, count):
    proxy = Process([weir, "proxy", "--upstream", f"http://127.0.0.1:{upstream.port}", "--listen", "127.0.0.1:0",
                     "--data", os.path.join(folder, name), "--policies", os.path.join(folder, "policies.yaml"),
                     "--trusted-proxies", "127.0.0.1", "--threads", "1", "--log-level", "off"], "listening proxy")
    with contextlib.closing(proxy):
        return attack(f"{name} behind weir proxy", proxy.port, count)


def through_auth_request(weir, folder, upstream, name, count):
    config = os.path.join(folder, "weir.yaml")
    with open(config, "w") as file:
        file.write("trusted_proxies: [127.0.0.1]\nauth: { target: original }\nlog: { level: off }\n")
    service = Process([weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--config", config,
                       "--data", os.path.join(folder, name + "-auth"), "--policies", os.path.join(folder, "policies.yaml")],
                      "listening http")
    with contextlib.closing(service):
        # The target is forwarded to the upstream as the client sent it.
        gate = Nginx(folder, name + "-gate", f"""
    location / {{ auth_request /weir; proxy_pass http://127.0.0.1:{upstream.port}; }}
    location = /weir {{
      internal;
      proxy_pass http://127.0.0.1:{service.port}/v1/auth?deny_status=403;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-URI $request_uri;
      proxy_set_header X-Original-Method $request_method;
      proxy_set_header X-Forwarded-Uri "";
      proxy_set_header X-Forwarded-Method "";
      proxy_set_header X-Forwarded-For $http_x_forwarded_for;
    }}""")
        with contextlib.closing(gate):
            return attack(f"{name} behind nginx with auth_request", gate.port, count)


def main():
    weir, chosen = sys.argv[1], sys.argv[2:] or list(UPSTREAMS)
    count = int(os.environ.get("WEIR_SPELLINGS", "400"))
    subprocess.run([os.path.join(SERVERS, "fetch.sh")], check=True)
    around = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "policies.yaml"), "w") as file:
            file.write(POLICIES)
        for name in chosen:
            tool, start = UPSTREAMS[name]
            if shutil.which(tool) is None:
                print(f"{name}: left out, {tool} is not installed")
                continue
            with contextlib.closing(start(folder)) as upstream:
                around += through_proxy(weir, folder, upstream, name, count)
                if name in ("nginx", "express"):
                    around += through_auth_request(weir, folder, upstream, name, count)
    return 1 if around else 0


if __name__ == "__main__":
    sys.exit(main())
