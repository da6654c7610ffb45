"""Checks a running service against docs/reference/openapi.yaml. Usage: openapi_test.py FILE WEIR

Every path of the file is requested, in the file's order, with its own examples: the answer has the first status
listed for it and the shape of its schema. Every route of the service is in the file. Without the key, and with a wrong
one, every operation that requires one answers 401 and changes nothing; those that require none are listed here.
Broken JSON is 400, an unknown method 405, each with the common error body.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import jsonschema
import yaml

KEY = "openapi-test-key"
METHODS = ("get", "post", "put", "delete")
CONFIG = ("POST", "/admin/rate-limit/config", {"configName": "payouts", "windowSize": "PT1M", "maxPerWindow": 100})
USER = ("POST", "/api/config", {"userId": "42", "rateLimit": 5, "timeWindow": 60})
# What must exist before the example of a path can be answered.
BEFORE = {
    "/v1/check": [CONFIG],
    "/admin/rate-limit/config/{configName}": [CONFIG],
    "/api/quota/{userId}": [USER],
    "/admin/audit/{id}/undo": [("POST", "/admin/policies", {"policyKey": "undone", "type": "TOKEN_BUCKET"})],
}
# Everything allowed without a key: the calls that clients make (docs/reference/access.md).
WITHOUT_KEY = {
    "POST /v1/check", "POST /v1/peek", "POST /v1/reserve",
}
# Where a change that should not have been made would show.
STATE = ("/admin/policies", "/admin/audit", "/admin/metrics", "/admin/rate-limit/config",
         "/admin/rate-limit/config/payouts/versions", "/api/config/42", "/admin/policies/user-123/versions")


class Service:
    def __init__(self, weir):
        self.data = tempfile.TemporaryDirectory()
        self.child = subprocess.Popen(
            [weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", self.data.name,
             "--admin-key", KEY, "--log-level", "off"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "WEIR_NOTIFY_PROVIDERS": "sms=console:"})
        for line in self.child.stdout:
            if line.startswith("listening http "):
                self.origin = "http://" + line.split()[2]
                return
        sys.exit("the program did not start")

    def ask(self, method, path, body=None, key=KEY):
        headers = {"X-API-Key": key} if key else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers.get_content_type(), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get_content_type(), error.read()

    def message(self, channel):
        """The id of a message; one on a channel without a provider becomes a dead letter."""
        # A user without quiet hours, which the example has.
        self.ask("POST", "/api/config", {"userId": "43", "rateLimit": 5, "timeWindow": 60})
        body = {"userId": "43", "message": "hello", "channel": channel}
        event = json.loads(self.ask("POST", "/api/send", body)[2])["eventId"]
        for _ in range(1000):
            state = json.loads(self.ask("GET", f"/api/messages/{event}")[2])["state"]
            if state in ("SENT", "DEAD"):
                return event
            time.sleep(0.02)
        sys.exit(f"the message stayed {state}")

    def stop(self):
        self.child.terminate()
        self.child.wait(timeout=120)
        self.data.cleanup()


class Api:
    def __init__(self, path):
        with open(path, encoding="utf-8") as text:
            self.root = yaml.safe_load(text)
        jsonschema.Draft202012Validator.check_schema({"$defs": self.root["components"]["schemas"]})

    def follow(self, node):
        while "$ref" in node:
            target = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def operations(self):
        for path, item in self.root["paths"].items():
            for method in item:
                if method in METHODS:
                    yield method.upper(), path, item, item[method]

    def validate(self, schema, value):
        # The whole file is the root, so that its references can be resolved.
        jsonschema.Draft202012Validator({**self.root, **schema} if "$ref" not in schema else
                                        {**self.root, "allOf": [schema]}).validate(value)

    def target(self, path, item, operation):
        """The path with the examples of its parameters."""
        query = []
        for given in item.get("parameters", []) + operation.get("parameters", []):
            parameter = self.follow(given)
            if parameter["in"] == "path":
                value = urllib.parse.quote(str(parameter["example"]), safe="")
                path = path.replace("{" + parameter["name"] + "}", value)
            elif parameter["in"] == "query" and "example" in parameter:
                query.append((parameter["name"], parameter["example"]))
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def body(self, operation):
        if "requestBody" not in operation:
            return None
        content = self.follow(operation["requestBody"])["content"]["application/json"]
        self.validate(content["schema"], content["example"])
        return content["example"]


failures = []


def check(condition, what):
    if not condition:
        failures.append(what)


def check_answer(api, operation, where, answer, wanted):
    status, content_type, body = answer
    check(str(status) == wanted, f"{where}: {status} instead of {wanted}: {body[:200]!r}")
    response = operation["responses"].get(str(status))
    if response is None:
        return check(False, f"{where}: {status} is not in the file")
    content = api.follow(response).get("content")
    if content is None:
        return check(body == b"", f"{where}: {status} has a body that the file does not know")
    check(content_type in content, f"{where}: {content_type} instead of {sorted(content)}")
    if content_type == "application/json":
        try:
            api.validate(content[content_type]["schema"], json.loads(body))
        except (jsonschema.ValidationError, json.JSONDecodeError) as error:
            check(False, f"{where}: {error.message if hasattr(error, 'message') else error}: {body[:300]!r}")


def walk(api, service):
    count = 0
    for method, path, item, operation in api.operations():
        for words in BEFORE.get(path, []):
            service.ask(*words)
        target = api.target(path, item, operation)
        if path == "/admin/audit/{id}/undo":
            changes = json.loads(service.ask("GET", "/admin/audit")[2])["changes"]
            target = target.replace("/1/", f"/{changes[0]['id']}/")
        if path == "/api/messages/{eventId}":
            target = target.replace("6f1c2a34", service.message("sms"))
        if path == "/admin/notify/dead/{eventId}":
            target = target.replace("6f1c2a34", service.message("none"))
        wanted = "204" if path == "/admin/audit/{id}/undo" else next(iter(operation["responses"]))
        check_answer(api, operation, f"{method} {target}", service.ask(method, target, api.body(operation)), wanted)
        count += 1
    return count


def wait_for_counted_calls(service):
    """Refunds and sends are counted, and written to the audit log every second, all of them together: those of the walk
    are written when one that was made after it is."""
    service.ask("POST", "/v1/refund", {"key": "user-123"})

    def written():
        changes = json.loads(service.ask("GET", "/admin/audit")[2])["changes"]
        return sum(change["after"]["count"] for change in changes if change["action"] == "check.refund")

    deadline = time.monotonic() + 120
    while written() < 2 and time.monotonic() < deadline:  # the walk's, and this one
        time.sleep(0.05)
    check(written() == 2, f"{written()} refunds are in the audit log instead of 2")


def errors(api, service):
    schema = api.root["components"]["schemas"]["Error"]

    def refused(method, target, body, key, *statuses):
        found, _, text = service.ask(method, target, body, key)
        status = found
        check(found in statuses, f"{method} {target}: {found} instead of {statuses}")
        try:
            api.validate(schema, json.loads(text))
        except (jsonschema.ValidationError, json.JSONDecodeError) as error:
            check(False, f"{method} {target}: {status} has another body: {error}")

    def look(path):
        status, _, body = service.ask("GET", path)
        return status, re.sub(rb'"resetAfterMs":\d+', b"", body)

    for words in (CONFIG, ("POST", "/admin/policies", {"policyKey": "user-123", "type": "TOKEN_BUCKET"}),
                  ("PUT", "/admin/policies/user-123", {"type": "FIXED_WINDOW", "windowSeconds": 8640000}),
                  ("POST", "/api/config", {"userId": "42", "rateLimit": 7, "timeWindow": 60}), ("POST", "/v1/check", {"key": "user-123"})):
        service.ask(*words)
    wait_for_counted_calls(service)
    before = [look(path) for path in STATE]
    for method, path, item, operation in api.operations():
        if "security" not in operation:
            continue
        target = api.target(path, item, operation)
        refused(method, target, api.body(operation), None, 401)
        for key in ("wrong-key", KEY[:-1], KEY + "x"):
            # After some of them the address is locked out.
            refused(method, target, api.body(operation), key, 401, 429)
    for path, then in zip(STATE, before):
        now = look(path)
        check(now[0] == 200 and now == then, f"{path} changed without the key: {then} to {now}")
    for method, path, item, operation in api.operations():
        target = api.target(path, item, operation)
        if "requestBody" in operation:
            refused(method, target, b"[", KEY, 400)
        if path != "/v1/auth":  # accepts any method: proxies use that of the original request
            refused("PATCH", target, None, KEY, 405)


def keys(api):
    for method, path, _, operation in api.operations():
        name = f"{method} {path}"
        if "security" in operation:
            check(name not in WITHOUT_KEY, f"{name}: needs a key after all")
        elif path.startswith("/admin"):
            check(False, f"{name}: asks for no key")
        elif method != "GET":
            check(name in WITHOUT_KEY, f"{name}: changes something without a key")


def routes(api, service):
    answer = json.loads(service.ask("GET", "/admin/routes")[2])
    served = {re.sub(r"^GET /assets/.*", "GET /assets/{file}", route) for route in answer["routes"]}
    roles = {re.sub(r"^GET /assets/.*", "GET /assets/{file}", route): role for route, role in answer["roles"].items()}
    with open(sys.argv[1].replace("openapi.yaml", "access.md"), encoding="utf-8") as text:
        table = dict(re.findall(r"^\| `([A-Z]+ /[^`]*)` \| (\w+) \|", text.read(), re.M))
    for method, path, _, operation in api.operations():
        route = f"{method} {path}"
        check(roles.get(route) == operation.get("x-role"), f"{route}: the service asks for the role {roles.get(route)}")
        check(table.get(route) == operation.get("x-role"), f"{route}: access.md has the role {table.get(route)}")
    for route in sorted(set(table) - served):
        check(False, f"in access.md, but not served: {route}")
    written = {f"{method} {path}" for method, path, _, _ in api.operations()}
    for route in sorted(served - written):
        check(False, f"served, but not in the file: {route}")
    for route in sorted(written - served):
        check(False, f"in the file, but not served: {route}")


def main():
    api = Api(sys.argv[1])
    service = Service(sys.argv[2])
    try:
        keys(api)
        routes(api, service)
        count = walk(api, service)
        errors(api, service)
    finally:
        service.stop()
    for failure in failures:
        print(failure)
    print(f"{count} operations asked, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
