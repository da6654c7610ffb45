"""Checks Kubernetes objects against each other and against the program, which schemas cannot do."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile

import yaml

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DRAIN_SECONDS = 10  # the default of limits.drain_timeout
SAVE_SECONDS = 5    # the time a process has for saving its limits after that


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def within(labels, all_labels):
    return bool(labels) and all(all_labels.get(key) == value for key, value in labels.items())


def check_config(weir, data):
    """The configuration in a ConfigMap is accepted by the program, with the key that the Secret contains."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in data.items():
            write(folder, name, text)
        config = yaml.safe_load(data["weir.yaml"]) if "weir.yaml" in data else {"policies": sorted(data)}
        config.pop("tls", None)  # that certificate does not exist here
        run(weir, "config", "check", write(folder, "weir.yaml", yaml.safe_dump(config)),
            env={**os.environ, "WEIR_ADMIN_KEYS": "0123456789abcdef"})


def check_gate(weir, args, data):
    """`weir proxy` starts with the arguments, on other ports."""
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for arg in args:
            arg = re.sub(r"^(--listen|--admin)=.*", r"\1=127.0.0.1:0", arg)
            words.append(arg.replace("/etc/weir", folder).replace("/var/lib/weir", os.path.join(folder, "data")))
        for name, text in data.items():
            write(folder, name, text)
        child = subprocess.Popen([weir, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [child.stdout.readline() for word in words if word.endswith("=127.0.0.1:0")]
        child.terminate()
        errors = child.communicate(timeout=120)[1]
        expect(all(line.startswith("listening ") for line in lines), f"weir {' '.join(args)}: {errors}")


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
    resources = container["resources"]
    expect("memory" in resources["limits"], f"{name}: no memory limit")
    expect({"cpu", "memory"} <= set(resources["requests"]), f"{name}: requests must name cpu and memory")
    expect(not container["image"].endswith(":latest") and ":" in container["image"], f"{name}: image without version")


def check_weir(pod, container, named, weir):
    """What only Weir's own container has: probes, time to drain, arguments that match its files."""
    expect({"readinessProbe", "livenessProbe"} <= set(container), "weir: needs both probes")
    wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = pod.get("terminationGracePeriodSeconds", 30)
    expect(wait + DRAIN_SECONDS + SAVE_SECONDS <= grace, f"weir: would be killed {grace} s after the end began")
    data = {}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "configMap" in volume:
            expect(mount["readOnly"] and mount["mountPath"] == "/etc/weir", "weir: /etc/weir is not mounted")
            expect(("ConfigMap", volume["configMap"]["name"]) in named, f"no ConfigMap {volume['configMap']['name']}")
            data = named["ConfigMap", volume["configMap"]["name"]]["data"]
    for name in re.findall(r"/etc/weir/(\S+)", " ".join(container["args"])):
        expect(name in data, f"weir: {name} is not in the ConfigMap")
    if container["args"][0] == "proxy":
        check_gate(weir, container["args"], data)
    return yaml.safe_load(data["weir.yaml"]) if "weir.yaml" in data else {}


def most_pods(deployment, objects):
    scalers = [one["spec"] for one in objects if one["kind"] == "HorizontalPodAutoscaler"]
    for scaler in scalers:
        if scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]:
            return scaler["maxReplicas"]
    return deployment["spec"]["replicas"]


def check_deployment(one, named, objects, weir, given):
    name = one["metadata"]["name"]
    pod = one["spec"]["template"]["spec"]
    labels = one["spec"]["template"]["metadata"]["labels"]
    expect(within(one["spec"]["selector"]["matchLabels"], labels), f"{name}: does not select its own pods")
    secure = pod["securityContext"]
    expect(secure["runAsNonRoot"] and secure["runAsUser"] > 0, f"{name}: may run as root")
    expect(secure["seccompProfile"] == {"type": "RuntimeDefault"}, f"{name}: no seccomp profile")
    expect(pod["automountServiceAccountToken"] is False, f"{name}: has a token of the cluster")
    for container in pod["containers"]:
        check_container(pod, container)
        for variable in container.get("env", []):
            secret = variable["valueFrom"]["secretKeyRef"]["name"]
            expect(("Secret", secret) in named or secret in given, f"{name}: no secret {secret}")
        if container["name"] == "weir":
            config = check_weir(pod, container, named, weir)
            pods = most_pods(one, objects)
            if container["args"][0] == "serve" and pods > 1:
                expect(not config.get("store", "memory:").startswith("memory:"), f"{name}: {pods} pods share no store")
                expect(config["local_share"] * pods <= 1, f"{name}: {pods} times local_share is more than the limit")
    for volume in pod.get("volumes", []):
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            expect(("PersistentVolumeClaim", claim) in named, f"{name}: no such claim")
            expect(one["spec"]["replicas"] == 1 and one["spec"]["strategy"] == {"type": "Recreate"},
                   f"{name}: two pods cannot have the volume at once")


def check_selector(kind, name, one, pods):
    selector = {"Service": lambda: one["spec"]["selector"],
                "PodDisruptionBudget": lambda: one["spec"]["selector"]["matchLabels"],
                "NetworkPolicy": lambda: one["spec"]["podSelector"]["matchLabels"]}.get(kind)
    if selector is None:
        return
    chosen = [p for p in pods if within(selector(), p["spec"]["template"]["metadata"]["labels"])]
    expect(chosen, f"{kind} {name}: selects no pod")
    names = [port["name"] for p in chosen for c in p["spec"]["template"]["spec"]["containers"]
             for port in c.get("ports", [])]
    if kind == "Service":
        for port in one["spec"]["ports"]:
            expect(port["targetPort"] in names, f"Service {name}: no port {port['targetPort']}")
    if kind == "NetworkPolicy":
        for rule in one["spec"]["ingress"]:
            for port in rule["ports"]:
                expect(port["port"] in names, f"NetworkPolicy {name}: no port {port['port']}")


def check_objects(text, weir, given=()):
    """Checks all objects of a text; `given`: names of secrets that are created by hand. Returns the kinds."""
    objects = [one for one in yaml.safe_load_all(text) if one]
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    expect(len(named) == len(objects), "two objects of the same kind and name")
    pods = [one for one in objects if one["kind"] == "Deployment"]
    for (kind, name), one in named.items():
        expect(NAME.fullmatch(name) and len(name) <= 63, f"{kind}: bad name {name}")
        if kind == "ConfigMap":
            check_config(weir, one["data"])
        if kind == "Deployment":
            check_deployment(one, named, objects, weir, given)
        if kind == "HorizontalPodAutoscaler":
            target = one["spec"]["scaleTargetRef"]
            expect((target["kind"], target["name"]) in named, f"{name}: scales nothing")
            expect(one["spec"]["minReplicas"] <= one["spec"]["maxReplicas"], f"{name}: min above max")
        check_selector(kind, name, one, pods)
    return sorted(kind for kind, _ in named)


def pods_with(render, key):
    """The pod templates if this is the admin API's key."""
    rendered = [one for one in yaml.safe_load_all(render(key)) if one]
    return next(one["spec"]["template"] for one in rendered if one["kind"] == "Deployment")


def check_rotation(render):
    """A new key replaces the pods, which would otherwise accept the old one while they run, and no pod shows a key."""
    key, other = "0123456789abcdef", "fedcba9876543210"
    expect(pods_with(render, key) == pods_with(render, key), "pods are replaced without a change")
    expect(pods_with(render, key) != pods_with(render, other), "pods go on with the old key")
    digest = hashlib.sha256(key.encode()).hexdigest()
    shown = yaml.safe_dump(pods_with(render, key))
    expect(key not in shown and digest not in shown, "the pods show the key, or what it is compared with")
