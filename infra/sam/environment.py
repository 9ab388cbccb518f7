"""Prints what the Makefile tells SAM of an environment of samconfig.toml.

Usage: environment.py CONFIG network      the arguments with which `sam deploy` makes the
environment's network, a stack beside its own
       environment.py CONFIG overrides    the parameters of template.yaml; overrides on SAM's
       command line replace those of the file
       environment.py CONFIG outputs      the parameters of template.yaml that describe the network,
       as its stack puts them out
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path


class Environment:
    def __init__(self, name):
        with open(Path(__file__).parent.parent.parent / "samconfig.toml", "rb") as file:
            environments = tomllib.load(file)
        if "deploy" not in environments.get(name, {}):
            sys.exit(f"samconfig.toml has no environment {name!r} that can be deployed")
        of_all, deploy = (environments[name][part]["parameters"] for part in ("global", "deploy"))
        self.stack, self.region = of_all["stack_name"], of_all["region"]
        self.overrides, self.tags = deploy["parameter_overrides"], deploy["tags"]
        self.network = f"{self.stack}-network"

    def parameter(self, name):
        return dict(setting.split("=", 1) for setting in self.overrides.split())[name]

    def network_arguments(self):
        return f"--stack-name {self.network} --region {self.region} --tags {self.tags} --parameter-overrides NamePrefix={self.parameter('NamePrefix')}"

    def network_outputs(self):
        command = ["sam", "list", "stack-outputs", "--stack-name", self.network, "--region", self.region, "--output", "json"]
        outputs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return " ".join(f"{output['OutputKey']}={output['OutputValue']}" for output in outputs)


def main(config, what):
    environment = Environment(config)
    print({"network": environment.network_arguments, "overrides": lambda: environment.overrides, "outputs": environment.network_outputs}[what]())


if __name__ == "__main__":
    main(*sys.argv[1:])
