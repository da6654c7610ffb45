"""Checks one part of deploy/ with the available tools. Usage: deploy_test.py PART ROOT BUILD WEIR

Parts: kubernetes, helm, kubeconform, packages, dockerfile, systemd, prometheus, grafana, debian, upgrade. Prints `skipped: …` first if
a tool is missing; tests/support/deploy/fetch.sh fetches those that Debian does not have.
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

from objects import check_objects, check_rotation, expect, run, write


def find(root, tool):
    fetched = os.path.join(root, "build/deploy-tools/bin", tool)
    return fetched if os.path.exists(fetched) else shutil.which(tool)


def need(root, tool):
    found = find(root, tool)
    if found is None:
        print(f"skipped: {tool} is not here (./dev setup gets it where it can be had)")
        sys.exit(0)
    return found


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as text:
        return text.read()


# --- Kubernetes ----------------------------------------------------------------------------------

def manifests(root):
    folder = os.path.join(root, "deploy/kubernetes")
    return {name: read(folder, name) for name in sorted(os.listdir(folder))}


def kubernetes(root, _build, weir):
    for name, text in manifests(root).items():
        print(name, *check_objects(text, weir, given=("weir",)))


KEY = "admin.key=0123456789abcdef"
RELEASES = {  # values that the chart accepts, and a secret that is then expected to exist
    "the default": ([KEY], None),
    "the Redis door": ([KEY, "resp=true"], None),
    "a secret of one's own": (["admin.existingSecret=mine"], "mine"),
    "one pod that keeps its data": ([KEY, "config.store=memory:,persistence.size=1Gi"], None),
    "one pod that keeps nothing": ([KEY, "config.store=memory:,autoscaling.enabled=false,replicas=1",
                                    "networkPolicy.enabled=false"], None),
    "TLS": ([KEY, "config.tls.cert=/tls/tls.crt,config.tls.key=/tls/tls.key,extraVolumes[0].name=tls,"
             "extraVolumes[0].secret.secretName=tls,extraVolumeMounts[0].name=tls,extraVolumeMounts[0].mountPath=/tls,"
             "envFrom[0].secretRef.name=weir-store"], None),
}
REFUSED = {  # values that the chart rejects, and its message
    "": "admin.key",
    f"{KEY},config.store=memory:": "granting every limit 12 times",
    f"{KEY},config.store=null,autoscaling.enabled=false": "granting every limit 3 times",
    f"{KEY},config.tls.client_ca=/ca.pem": "probes",
    f"{KEY},autoscaling.min=13": "autoscaling.min",
    f"{KEY},replica=2": "replica is not allowed",
    f"{KEY},config.listen.http=off": 'name of "listen"',
    f"{KEY},config.store=etcd://x": "config.store",
    f"{KEY},terminationGracePeriodSeconds=10": "terminationGracePeriodSeconds",
    "admin.key=short": "admin.key",
}


def chart_words(root, values):
    words = ["template", "gate", os.path.join(root, "deploy/helm/weir"), "--kube-version", "1.30.0"]
    return words + [word for value in values if value for word in ("--set", value)]


def helm(root, _build, weir):
    program = need(root, "helm")
    chart = os.path.join(root, "deploy/helm/weir")
    print(run(program, "lint", "--strict", chart, "--set", KEY))
    for what, (values, secret) in RELEASES.items():
        rendered = run(program, *chart_words(root, values))
        expect(rendered.count("scheme: HTTPS") == (3 if what == "TLS" else 0), "probes must speak TLS, or not")
        print(what, *check_objects(rendered, weir, given=(secret,)))
    for values, word in REFUSED.items():
        refused = subprocess.run([program, *chart_words(root, [values])], capture_output=True, text=True, check=False)
        expect(refused.returncode != 0 and word in refused.stderr, f"not refused: {values}\n{refused.stderr}")
    check_rotation(lambda key: run(program, *chart_words(root, [f"admin.key={key}"])))
    check_notes(program, chart)


def check_notes(program, chart):
    """The notes that helm prints after an installation warn of what several pods would each keep by themselves."""
    with tempfile.TemporaryDirectory() as temp:
        copy = os.path.join(temp, "weir")
        shutil.copytree(chart, copy)
        write(copy, "templates/notes.yaml", 'notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | quote }}')
        words = (program, "template", "gate", copy, "--show-only", "templates/notes.yaml", "--set", KEY)
        several = yaml.safe_load(run(*words))["notes"]
        expect("WARNING: config.slots.store" in several and "WARNING: config.notify.store" in several, several)
        expect("http://gate-weir.default:8080/v1/check" in several, several)
        stored = "config.slots.store=postgres://db/weir,config.notify.store=postgres://db/weir"
        for values in (stored, "persistence.size=1Gi"):
            expect("WARNING" not in run(*words, "--set", values), f"warns without need: {values}")


def kubeconform(root, _build, _weir):
    program = need(root, "kubeconform")
    schemas = os.path.join(root, "build/deploy-tools/schemas")
    if not os.path.isdir(schemas):
        print("skipped: the schemas of Kubernetes are not here (./dev setup gets them where they can be had)")
        return
    place = "{{ .NormalizedKubernetesVersion }}{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json"
    texts = list(manifests(root).values())
    renderer = find(root, "helm")
    if renderer:
        texts += [run(renderer, *chart_words(root, values)) for values, _ in RELEASES.values()]
    else:
        print("without the chart, since helm is not here")
    for version in sorted(os.listdir(schemas)):
        print(version, run(program, "-strict", "-summary", "-schema-location", os.path.join(schemas, place),
                           "-kubernetes-version", re.search(r"\d+\.\d+\.\d+", version)[0],
                           input="\n---\n".join(texts)))


# They are installed with g++.
COMPILER = {"libc6-dev", "libgcc-12-dev", "libstdc++-12-dev", "linux-libc-dev"}


def listed(root, name):
    return set(re.sub(r"#.*", "", read(root, name)).split())


def packages(root, build, _weir):
    """The program is compiled with headers of only those packages that its list names."""
    named = listed(root, "packages-program.txt")
    expect(named <= listed(root, "packages.txt"), "packages-program.txt names what packages.txt does not")
    objects = [name for name in run("ninja", "-C", build, "-t", "inputs", "weir").split() if name.endswith(".o")]
    seen = set(re.findall(r"/usr/include/\S+", run("ninja", "-C", build, "-t", "deps", *objects)))
    expect(len(seen) > 100, f"only {len(seen)} headers were seen")
    owners = set(re.findall(r"^([^:\s]+):", run("dpkg", "-S", *sorted(seen)), re.MULTILINE))
    expect(owners <= named | COMPILER, f"packages-program.txt lacks {owners - named - COMPILER}")
    print(len(named), "packages build the program")


def dockerfile(root, _build, _weir):
    print(run(need(root, "hadolint"), "--failure-threshold", "info", os.path.join(root, "Dockerfile")))


# --- systemd, Prometheus, Grafana ------------------------------------------------------------------

def systemd(root, _build, weir):
    program = need(root, "systemd-analyze")
    unit = read(root, "deploy/systemd/weir.service")
    expect(int(re.search(r"^TimeoutStopSec=(\d+)s$", unit, re.MULTILINE)[1]) >= 15, "no time to drain (10 s) and save")
    with tempfile.TemporaryDirectory() as folder:
        # Neither the program nor its manual is installed here.
        here = unit.replace("/usr/bin/weir", weir).replace("Documentation=man:weir(1)\n", "")
        path = write(folder, "weir.service", here)
        said = subprocess.run([program, "verify", "--man=no", path], capture_output=True, text=True, check=False)
        # An unknown setting is only a warning for systemd.
        expect(said.returncode == 0 and not said.stderr, said.stderr)
        # 10 is a process that may do anything, 0 one that may do nothing; the threshold is in tenths.
        print(run(program, "security", "--offline=true", "--no-pager", "--threshold=13", path).splitlines()[-1])


def prometheus(root, _build, _weir):
    program = need(root, "promtool")
    folder = os.path.join(root, "deploy/prometheus")
    print(run(program, "check", "rules", os.path.join(folder, "alerts.yaml")))
    print(run(program, "check", "config", os.path.join(folder, "prometheus.yaml")))
    test = read(root, "tests/deploy/alerts_test.yaml").replace("ALERTS", os.path.join(folder, "alerts.yaml"))
    fired = {one["alertname"] for group in yaml.safe_load(test)["tests"] for one in group["alert_rule_test"]
             if one["exp_alerts"]}
    untested = {rule["alert"] for rule in alert_rules(root)} - fired
    expect(not untested, f"no test makes these fire: {sorted(untested)}")
    with tempfile.TemporaryDirectory() as temp:
        print(run(program, "test", "rules", write(temp, "test.yaml", test)))


def alert_rules(root):
    groups = yaml.safe_load(read(root, "deploy/prometheus/alerts.yaml"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def served_metrics(weir, *more):
    """The names of all metrics that a running service exports."""
    with Serving(weir, *more) as origin:
        urllib.request.urlopen(origin + "/v1/check", b'{"key":"a"}').read()
        text = urllib.request.urlopen(origin + "/metrics").read().decode()
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def metrics_of(weir, *words, door="metrics"):
    """Metrics of a command that has an endpoint for them; the other servers need not exist."""
    with tempfile.TemporaryDirectory() as data:
        child = subprocess.Popen([weir, *words, f"--{door}", "127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=data)
        try:
            address = next(line.split()[2] for line in child.stdout if line.startswith(f"listening {door}"))
            text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
        finally:
            child.kill()
            child.wait(timeout=120)
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


def grafana(root, _build, weir):
    board = json.loads(read(root, "deploy/grafana/weir.json"))
    ids = [panel["id"] for panel in board["panels"]]
    expect(len(set(ids)) == len(ids) > 10, "panels need ids of their own")
    # With a shared store there are metrics for it as well; the store need not exist.
    known = served_metrics(weir) | served_metrics(weir, "--store", "redis://127.0.0.1:1")
    known |= served_metrics(weir, "--notify-store", "postgres://127.0.0.1:1/x", "--notify-broker", "kafka://127.0.0.1:1")
    nobody = ("--store", "postgres://127.0.0.1:1/x")
    known |= metrics_of(weir, "sender", "--broker", "kafka://127.0.0.1:1", *nobody)
    known |= metrics_of(weir, "dispatch", "--config", "pay", *nobody)
    known |= metrics_of(weir, "proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", door="admin")
    asked = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked |= set(re.findall(r"\b(?:weir|process)_\w+", target["expr"]))
    for rule in alert_rules(root):
        asked |= set(re.findall(r"\bweir_\w+", rule["expr"]))
    expect(asked, "no metric is asked for")
    told = set(re.findall(r"`(weir_\w+)`", read(root, "docs/reference/metrics.md")))
    untold = {name for name in known if name.startswith("weir_")} - told
    expect(not untold, f"docs/reference/metrics.md does not tell of {sorted(untold)}")
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
        status = self.child.wait(timeout=120)
        self.data.cleanup()
        expect(status == 0, f"the program ended with {status}")


def shell_root(folder):
    """A root with a shell for maintainer scripts, whose adduser only records its arguments."""
    for path in ("bin", "etc", "usr/bin", "var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp"):
        os.makedirs(os.path.join(folder, path), exist_ok=True)
    open(os.path.join(folder, "var/lib/dpkg/status"), "w", encoding="utf-8").close()
    for tool in ("/bin/sh", "/bin/rm"):
        shutil.copy(os.path.realpath(tool), os.path.join(folder, tool.lstrip("/")))
        for library in re.findall(r"(/lib\S+)", run("ldd", tool)):
            target = os.path.join(folder, library.lstrip("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.realpath(library), target)
    write_tool(folder, "adduser", 'echo "$@" >/adduser.log')
    write_tool(folder, "getent", "exit 2")


def write_tool(folder, name, text):
    os.chmod(write(os.path.join(folder, "usr/bin"), name, f"#!/bin/sh\n{text}\n"), 0o755)


def debian(root, build, _weir):
    need(root, "dpkg-deb")
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
        for path in ("lib/systemd/system/weir.service", "usr/share/man/man1/weir.1.gz",
                     "usr/share/doc/weir/examples/alerts.yaml"):
            expect(os.path.exists(os.path.join(folder, path)), f"{path} is missing")
        config = os.path.join(folder, "etc/weir/weir.yaml")
        with Serving(os.path.join(folder, "usr/bin/weir"), "--config", config) as origin:
            body = b'{"domain":"api","descriptors":[{"user":"42"}]}'
            answer = json.load(urllib.request.urlopen(origin + "/v1/check", body))
            expect(answer["policy"] == "per-user" and answer["remaining"] == 99, answer)
        # A modified conffile survives removal; purging removes everything.
        run(*dpkg, "-r", "weir")
        expect(os.path.exists(os.path.join(folder, "etc/weir/weir.yaml")), "removal took the configuration")
        run(*dpkg, "-P", "weir")
        expect(not os.path.exists(os.path.join(folder, "etc/weir")), "purge left the configuration")
        print("installed, served, removed and purged:", os.path.basename(package))


SYSTEMCTL = """echo "$@" >>/systemctl.log
case $1 in enable) : >/enabled ;; is-enabled) [ -e /enabled ] ;; esac
"""


def upgrade(root, _build, _weir):
    """A disabled service stays disabled when the package is upgraded, and an enabled one is restarted."""
    if os.getuid() != 0:
        print("skipped: chroot needs root")
        return
    with tempfile.TemporaryDirectory() as folder:
        shell_root(folder)
        os.makedirs(os.path.join(folder, "run/systemd/system"))
        write_tool(folder, "systemctl", SYSTEMCTL)

        def told(script, *words):
            """What systemctl was called for, apart from queries."""
            write(folder, "systemctl.log", "")
            write(folder, "script", read(root, f"deploy/debian/{script}"))
            run("chroot", folder, "/bin/sh", "/script", *words)
            lines = read(folder, "systemctl.log").splitlines()
            return [line.split()[0] for line in lines if not line.startswith(("is-", "daemon-"))]

        expect(told("postinst", "configure", "") == ["enable", "restart"], "not started when it is installed")
        expect(told("postinst", "configure", "0.1.0") == ["restart"], "not restarted by an upgrade")
        expect(told("prerm", "upgrade", "0.2.0") == [], "stopped long before the new program is there")
        os.remove(os.path.join(folder, "enabled"))
        # try-restart does nothing unless the service runs.
        expect(told("postinst", "configure", "0.1.0") == ["try-restart"], "an upgrade started what was disabled")
        # A package that is removed and installed again is as it was before.
        expect(told("prerm", "remove") == ["stop"], "not stopped when it is removed")
        print("an upgrade leaves a disabled service alone")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:5])
