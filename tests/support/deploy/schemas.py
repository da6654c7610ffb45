"""Writes the Kubernetes schemas as a self-contained folder. Usage: schemas.py FROM TO

The package refers to its files by network addresses; kubeconform would fetch them from there.
"""

import json
import os
import sys

OLDEST, NEWEST = "v1.25.0", "v1.37.0"  # the oldest as in kubeVersion of the chart
COMMON = "_definitions.json"
KINDS = [  # those that deploy/ uses; any other kind fails its check until it is listed here
    "configmap-v1", "deployment-apps-v1", "horizontalpodautoscaler-autoscaling-v2", "networkpolicy-networking-v1",
    "persistentvolumeclaim-v1", "poddisruptionbudget-policy-v1", "secret-v1", "service-v1", "serviceaccount-v1"]


def main(source, target):
    for version in (OLDEST, NEWEST):
        folder = os.path.join(target, f"{version}-strict")
        os.makedirs(folder)
        for name in [COMMON, *(f"{kind}.json" for kind in KINDS)]:
            with open(os.path.join(source, f"{version}-local-strict", name), encoding="utf-8") as text:
                schema = json.load(text)
            for address in ("$id", "$schema"):
                schema.pop(address)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(json.dumps(schema).replace(f'"/api/{COMMON}', f'"{COMMON}'))


if __name__ == "__main__":
    main(*sys.argv[1:])
