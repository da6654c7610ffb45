#!/usr/bin/env python3
"""Checks compose.yaml and the Dockerfile. Usage: compose_test.py SOURCE_DIR WEIR_PROGRAM

The file is parsed by docker-compose itself, which also validates it; no container is started.
Criteria are numbered as in the requirements: 6 (gateway, sender, PostgreSQL, Kafka) and 12 (Redis).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT, WEIR = sys.argv[1], sys.argv[2]
COMPOSE = os.path.join(ROOT, "compose.yaml")


def run(*command, env=None):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)


def load():
    if shutil.which("docker-compose"):
        shown = run("docker-compose", "-f", COMPOSE, "--profile", "mysql", "config")
        if shown.returncode != 0:
            raise SystemExit(f"docker-compose refuses {COMPOSE}:\n{shown.stderr}")
        return yaml.safe_load(shown.stdout)
    print("docker-compose is not installed: its own check of the file is skipped")
    with open(COMPOSE, encoding="utf-8") as text:
        return yaml.safe_load(text)


class ComposeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = load()
        cls.services = cls.file["services"]

    def waits_for_healthy(self, service, others):
        conditions = self.services[service]["depends_on"]
        for other in others:
            self.assertEqual(conditions[other]["condition"], "service_healthy", (service, other))
            self.assertTrue(self.services[other]["healthcheck"]["test"], other)

    def test_6_1_and_12_1_services(self):
        self.assertEqual(set(self.services), {"gateway", "sender", "service", "service-mysql", "postgres", "mysql",
                                              "redis", "kafka"})
        self.assertEqual({name for name, service in self.services.items() if service.get("profiles") == ["mysql"]},
                         {"mysql", "service-mysql"})

    def test_6_2_named_volume_for_postgres(self):
        name, place = self.services["postgres"]["volumes"][0].split(":")[:2]
        self.assertEqual(place, "/var/lib/postgresql/data")
        self.assertIn(name, self.file["volumes"])

    def test_6_3_and_12_2_start_order(self):
        self.waits_for_healthy("gateway", ["postgres", "kafka", "redis"])
        self.waits_for_healthy("sender", ["postgres", "kafka"])
        self.waits_for_healthy("service", ["postgres", "redis"])
        self.waits_for_healthy("service-mysql", ["mysql"])

    def test_6_4_and_12_3_nothing_to_do_by_hand(self):
        for name, service in self.services.items():
            self.assertTrue("image" in service or "build" in service, name)
            self.assertIn("healthcheck", service, name)
        for name in ("gateway", "sender", "service", "service-mysql"):
            build = self.services[name]["build"]
            dockerfile = os.path.join(ROOT, build["context"], build["dockerfile"])
            self.assertTrue(os.path.exists(dockerfile), dockerfile)
        # Every variable has a default.
        with open(COMPOSE, encoding="utf-8") as text:
            for variable in re.findall(r"\$\{([^}]*)\}", text.read()):
                self.assertIn(":-", variable)

    def test_who_needs_no_key_is_this_machine_alone(self):
        gateway, = [one["gateway"] for one in self.file["networks"]["default"]["ipam"]["config"]]
        for name in ("gateway", "service", "service-mysql"):
            environment = self.services[name]["environment"]
            self.assertEqual((environment["WEIR_ADMIN_KEYLESS"], environment["WEIR_ADMIN_ALLOW"]), ("allowed", gateway))

    def test_the_api_is_published_on_loopback_alone(self):
        for name, service in self.services.items():
            for port in service.get("ports", []):
                where = port["host_ip"] if isinstance(port, dict) else str(port)
                self.assertTrue(where.startswith("127.0.0.1"), (name, port))

    def test_commands_are_words_of_the_program(self):
        for name in ("gateway", "sender"):
            service = self.services[name]
            for command in (service["command"], service["healthcheck"]["test"][2:]):
                helped = run(WEIR, command[0], "--help")
                self.assertEqual(helped.returncode, 0, helped.stderr)
                for flag in command[1:]:
                    if flag.startswith("--"):
                        self.assertIn(flag, helped.stdout)

    def test_the_gateways_settings_are_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = os.path.join(folder, "weir.yaml")
            with open(empty, "w", encoding="utf-8") as out:
                out.write("{}\n")
            around = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
            for name in ("gateway", "service", "service-mysql"):
                settings = {k: str(v) for k, v in self.services[name]["environment"].items()}
                checked = run(WEIR, "config", "check", empty, env={**around, **settings})
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                self.assertNotIn("WEIR_", checked.stderr)
        helped = run(WEIR, "sender", "--help").stdout
        for name in self.services["sender"]["environment"]:
            self.assertIn(name, helped)


class DockerfileTest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as text:
            self.text = text.read()
        self.last_stage = self.text[self.text.rindex("\nFROM "):]

    def test_builds_apart_and_runs_as_nobody_special(self):
        self.assertEqual(len(re.findall(r"^FROM debian:12-slim", self.text, re.M)), 2)
        user = re.search(r"^USER (\S+)", self.last_stage, re.M)
        self.assertIsNotNone(user)
        self.assertNotIn(user[1], ("root", "0"))

    def test_builds_as_developers_do(self):
        self.assertIn("RUN ./dev build release", self.text)

    def test_health_is_asked_by_the_program_itself(self):
        self.assertIn('CMD ["weir", "healthcheck"]', self.last_stage)

    def test_has_the_libraries_that_the_program_is_linked_with(self):
        needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", WEIR).stdout)
        paths = dict(re.findall(r"(\S+) => (\S+)", run("ldd", WEIR).stdout))
        installed = set(self.last_stage.split()) | {"libc6", "libstdc++6", "libgcc-s1", "zlib1g"}
        for library in needed:
            # dpkg knows the file by its resolved path.
            for path in (paths[library], os.path.realpath(paths[library])):
                owner = run("dpkg-query", "--search", path).stdout
                if not owner:
                    owner = run("dpkg-query", "--search", path.replace("/lib/", "/usr/lib/", 1)).stdout
                if owner:
                    break
            package = owner.split(":")[0]
            self.assertTrue(package, f"no package has {library}")
            if not library.startswith(("libasan", "libubsan", "libtsan")):
                self.assertIn(package, installed, library)


class HealthcheckTest(unittest.TestCase):
    def test_a_file_is_healthy_while_it_is_young(self):
        with tempfile.NamedTemporaryFile() as file:
            young = run(WEIR, "healthcheck", "--file", file.name, "--max-age", "30")
            self.assertEqual(young.returncode, 0, young.stderr)
            os.utime(file.name, (1, 1))
            old = run(WEIR, "healthcheck", "--file", file.name, "--max-age", "30")
            self.assertEqual(old.returncode, 1)
            self.assertIn("last written", old.stderr)

    def test_nobody_there_is_not_healthy(self):
        away = run(WEIR, "healthcheck", "--url", "http://127.0.0.1:1/readyz")
        self.assertEqual(away.returncode, 1)
        self.assertIn("127.0.0.1:1", away.stderr)

    def test_a_service_is_healthy_when_it_is_ready(self):
        with tempfile.TemporaryDirectory() as folder:
            service = subprocess.Popen(
                [WEIR, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", folder],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            try:
                port = service.stdout.readline().strip().rsplit(":", 1)[1]
                asked = run(WEIR, "healthcheck", "--url", f"http://127.0.0.1:{port}/readyz")
                self.assertEqual(asked.returncode, 0, asked.stderr)
                asked = run(WEIR, "healthcheck", "--url", f"http://127.0.0.1:{port}/no-such-thing")
                self.assertEqual(asked.returncode, 1)
                self.assertIn("404", asked.stderr)
            finally:
                service.kill()
                service.communicate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
