"""Checks one part of deploy/ with what can check it. Usage: deploy_test.py PART ROOT BUILD WEIR

Parts: kubernetes, helm, systemd, prometheus, grafana, debian. Prints `skipped: …` where a tool is missing.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import yaml

SKIP = "skipped: {} is not installed"


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def need(tool):
    found = shutil.which(tool)
    if found is None:
        print(SKIP.format(tool))
        sys.exit(0)
    return found


# --- Kubernetes ----------------------------------------------------------------------------------

API = {"ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1", "Service": "v1", "PersistentVolumeClaim": "v1",
       "Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
       "NetworkPolicy": "networking.k8s.io/v1"}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def within(labels, all_labels):
    return bool(labels) and all(all_labels.get(key) == value for key, value in labels.items())


def check_container(pod, container):
    name = container["name"]
    ports = [port["name"] for port in container.get("ports", [])]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        if probe in container:
            expect(container[probe]["httpGet"]["port"] in ports, f"{name}: {probe} asks a port that is not there")
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    for mount in container.get("volumeMounts", []):
        expect(mount["name"] in volumes, f"{name}: no volume {mount['name']}")
    secure = container["securityContext"]
    expect(secure["readOnlyRootFilesystem"] and not secure["allowPrivilegeEscalation"]
           and secure["capabilities"]["drop"] == ["ALL"], f"{name}: not hardened")
    expect("memory" in container["resources"]["limits"], f"{name}: no memory limit")
    expect(not container["image"].endswith(":latest") and ":" in container["image"], f"{name}: image without version")


def check_config(weir, data):
    """The configuration in a ConfigMap is one that the program takes, with the key that the Secret holds."""
    if "weir.yaml" in data:
        config = yaml.safe_load(data["weir.yaml"])
        config["admin"]["keys"] = ["0123456789abcdef"]
        data = dict(data, **{"weir.yaml": yaml.safe_dump(config)})
    with tempfile.TemporaryDirectory() as folder:
        for name, text in data.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        if "weir.yaml" in data:
            run(weir, "config", "check", os.path.join(folder, "weir.yaml"))
        else:
            main = os.path.join(folder, "main.yaml")
            with open(main, "w", encoding="utf-8") as out:
                out.write(yaml.safe_dump({"policies": sorted(data)}))
            run(weir, "config", "check", main)


def check_objects(text, weir, given=()):
    objects = [one for one in yaml.safe_load_all(text) if one]
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    expect(len(named) == len(objects), "two objects of the same kind and name")
    pods = [one for one in objects if one["kind"] == "Deployment"]
    for (kind, name), one in named.items():
        expect(API.get(kind) == one["apiVersion"], f"{kind} {name}: apiVersion {one['apiVersion']}")
        expect(NAME.fullmatch(name) and len(name) <= 63, f"{kind}: bad name {name}")
        if kind == "ConfigMap":
            check_config(weir, one["data"])
        if kind == "Deployment":
            pod = one["spec"]["template"]["spec"]
            labels = one["spec"]["template"]["metadata"]["labels"]
            expect(within(one["spec"]["selector"]["matchLabels"], labels), f"{name}: does not select its own pods")
            expect(pod["securityContext"]["runAsNonRoot"], f"{name}: may run as root")
            for container in pod["containers"]:
                check_container(pod, container)
                for variable in container.get("env", []):
                    secret = variable["valueFrom"]["secretKeyRef"]["name"]
                    expect(("Secret", secret) in named or secret in given, f"{name}: no secret {secret}")
            for volume in pod.get("volumes", []):
                if "configMap" in volume:
                    expect(("ConfigMap", volume["configMap"]["name"]) in named, f"{name}: no such ConfigMap")
                if "persistentVolumeClaim" in volume:
                    claim = volume["persistentVolumeClaim"]["claimName"]
                    expect(("PersistentVolumeClaim", claim) in named, f"{name}: no such claim")
        if kind == "HorizontalPodAutoscaler":
            target = one["spec"]["scaleTargetRef"]
            expect((target["kind"], target["name"]) in named, f"{name}: scales nothing")
            expect(one["spec"]["minReplicas"] <= one["spec"]["maxReplicas"], f"{name}: min above max")
        selector = {"Service": lambda: one["spec"]["selector"],
                    "PodDisruptionBudget": lambda: one["spec"]["selector"]["matchLabels"],
                    "NetworkPolicy": lambda: one["spec"]["podSelector"]["matchLabels"]}.get(kind)
        if selector:
            chosen = [p for p in pods if within(selector(), p["spec"]["template"]["metadata"]["labels"])]
            expect(chosen, f"{kind} {name}: selects no pod")
            if kind == "Service":
                names = [port["name"] for p in chosen for c in p["spec"]["template"]["spec"]["containers"]
                         for port in c.get("ports", [])]
                for port in one["spec"]["ports"]:
                    expect(port["targetPort"] in names, f"Service {name}: no port {port['targetPort']}")
    return sorted(kind for kind, _ in named)


def kubernetes(root, _build, weir):
    folder = os.path.join(root, "deploy/kubernetes")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            print(name, *check_objects(text.read(), weir, given=("weir",)))


def helm(root, _build, weir):
    program = need("helm")
    chart = os.path.join(root, "deploy/helm/weir")
    key = ("--set", "admin.key=0123456789abcdef")
    print(run(program, "lint", "--strict", chart, *key))
    for more in (key, (*key, "--set", "resp=true"), ("--set", "admin.existingSecret=mine"),
                 (*key, "--set", "networkPolicy.enabled=false,persistence.size=1Gi")):
        rendered = run(program, "template", "gate", chart, "--kube-version", "1.30.0", *more)
        print(" ".join(more[2:]), *check_objects(rendered, weir, given=("mine",)))
    refused = subprocess.run([program, "template", "gate", chart, "--kube-version", "1.30.0"],
                             capture_output=True, text=True, check=False)
    expect(refused.returncode != 0 and "admin.key" in refused.stderr, "the chart must ask for a key")


# --- systemd, Prometheus, Grafana ------------------------------------------------------------------

def systemd(root, _build, weir):
    program = need("systemd-analyze")
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(root, "deploy/systemd/weir.service"),
                                                       encoding="utf-8") as unit:
        path = os.path.join(folder, "weir.service")
        with open(path, "w", encoding="utf-8") as out:
            out.write(unit.read().replace("/usr/bin/weir", weir).replace("Documentation=man:weir(1)\n", ""))
        print(run(program, "verify", "--man=no", path))
        # 10 is a process that may do anything, 0 one that may do nothing; threshold is in tenths.
        print(run(program, "security", "--offline=true", "--no-pager", "--threshold=20", path).splitlines()[-1])


def prometheus(root, _build, _weir):
    program = need("promtool")
    folder = os.path.join(root, "deploy/prometheus")
    print(run(program, "check", "rules", os.path.join(folder, "alerts.yaml")))
    print(run(program, "check", "config", os.path.join(folder, "prometheus.yaml")))
    with tempfile.TemporaryDirectory() as temp:
        with open(os.path.join(root, "tests/deploy/alerts_test.yaml"), encoding="utf-8") as text:
            test = text.read().replace("ALERTS", os.path.join(folder, "alerts.yaml"))
        path = os.path.join(temp, "test.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(test)
        print(run(program, "test", "rules", path))


def served_metrics(weir):
    """The names of all metrics that a running service gives."""
    with Serving(weir) as origin:
        urllib.request.urlopen(origin + "/v1/check", b'{"key":"a"}').read()
        text = urllib.request.urlopen(origin + "/metrics").read().decode()
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def grafana(root, _build, weir):
    with open(os.path.join(root, "deploy/grafana/weir.json"), encoding="utf-8") as text:
        board = json.load(text)
    ids = [panel["id"] for panel in board["panels"]]
    expect(len(set(ids)) == len(ids) > 10, "panels need ids of their own")
    known = served_metrics(weir)
    asked = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked |= set(re.findall(r"\b(?:weir|process)_\w+", target["expr"]))
    with open(os.path.join(root, "deploy/prometheus/alerts.yaml"), encoding="utf-8") as text:
        for rule in yaml.safe_load(text)["groups"][0]["rules"]:
            asked |= set(re.findall(r"\bweir_\w+", rule["expr"]))
    missing = {name for name in asked if re.sub(r"_(bucket|sum|count)$", "", name) not in known and name not in known}
    expect(not missing, f"asks for metrics that the service does not give: {sorted(missing)}")
    print(f"{len(ids)} panels, {len(asked)} metrics, all of them served")


# --- the Debian package ----------------------------------------------------------------------------

class Serving:
    """`weir serve` on a free port until the block ends."""

    def __init__(self, weir, *more):
        self.words = [weir, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", *more]

    def __enter__(self):
        self.data = tempfile.TemporaryDirectory()
        self.child = subprocess.Popen([*self.words, "--data", self.data.name], stdout=subprocess.PIPE, text=True)
        for line in self.child.stdout:
            if line.startswith("listening http "):
                return "http://" + line.split()[2]
        sys.exit("the program did not start")

    def __exit__(self, *_):
        self.child.terminate()
        status = self.child.wait(timeout=30)
        self.data.cleanup()
        expect(status == 0, f"the program ended with {status}")


def shell_root(folder):
    """A root with a shell for maintainer scripts, whose adduser only writes down what it was told."""
    for path in ("bin", "etc", "usr/bin", "var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"):
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    open(os.path.join(folder, "var/lib/dpkg/status"), "w", encoding="utf-8").close()
    for tool in ("/bin/sh", "/bin/rm"):
        shutil.copy(os.path.realpath(tool), os.path.join(folder, tool.lstrip("/")))
        for library in re.findall(r"(/lib\S+)", run("ldd", tool)):
            target = os.path.join(folder, library.lstrip("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.realpath(library), target)
    for name, text in (("adduser", 'echo "$@" >/adduser.log'), ("getent", "exit 2")):
        path = os.path.join(folder, "usr/bin", name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)


def debian(_root, build, _weir):
    need("dpkg-deb")
    with tempfile.TemporaryDirectory() as temp:
        run("cpack", "-G", "DEB", "-B", temp, cwd=build)
        package = [os.path.join(temp, name) for name in os.listdir(temp) if name.endswith(".deb")][0]
        fields = run("dpkg-deb", "-f", package)
        expect("libssl3" in fields and "adduser" in fields, f"dependencies are missing:\n{fields}")
        folder = os.path.join(temp, "root")
        shell_root(folder)
        dpkg = ["dpkg", f"--root={folder}", "--force-depends", f"--log={temp}/dpkg.log"]
        if os.getuid() != 0:
            print("skipped: dpkg -i needs root; the package was built")
            return
        run(*dpkg, "-i", package)
        state = run("dpkg-query", f"--admindir={folder}/var/lib/dpkg", "-W", "-f", "${Status}|${Conffiles}", "weir")
        expect(state.startswith("install ok installed") and "/etc/weir/weir.yaml" in state, state)
        with open(os.path.join(folder, "adduser.log"), encoding="utf-8") as told:
            expect("--system" in told.read(), "no service user was made")
        for path in ("lib/systemd/system/weir.service", "usr/share/man/man1/weir.1.gz"):
            expect(os.path.exists(os.path.join(folder, path)), f"{path} is missing")
        config = os.path.join(folder, "etc/weir/weir.yaml")
        with Serving(os.path.join(folder, "usr/bin/weir"), "--config", config) as origin:
            body = b'{"domain":"api","descriptors":[{"user":"42"}]}'
            answer = json.load(urllib.request.urlopen(origin + "/v1/check", body))
            expect(answer["policy"] == "per-user" and answer["remaining"] == 99, answer)
        # A conffile that was changed survives removal; purging takes everything.
        run(*dpkg, "-r", "weir")
        expect(os.path.exists(os.path.join(folder, "etc/weir/weir.yaml")), "removal took the configuration")
        run(*dpkg, "-P", "weir")
        expect(not os.path.exists(os.path.join(folder, "etc/weir")), "purge left the configuration")
        print("installed, served, removed and purged:", os.path.basename(package))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:5])
