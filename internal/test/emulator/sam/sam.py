"""Runs the SAM CLI with three changes. Its wait for the end of a function's log expects one line
before REPORT and stalls for a second when lines arrive together, so that one match becomes a
search. And each container gets a label that names the stack, by which it can be found later. And an
authorizer may be named by its alias, as an integration may: SAM would leave such an authorizer out,
and its routes open."""

import os
import re

import samcli.local.docker.container as container
from samcli.cli.main import cli
from samcli.commands.local.lib.swagger.integration_uri import LambdaUri


class Expressions:
    def __getattr__(self, name):
        return getattr(re, name)

    def match(self, pattern, text, *flags):
        return (re.search if "REPORT RequestId" in pattern else re.match)(pattern, text, *flags)


def create(self, context, create=container.Container.create):
    self._labels = {**self._labels, "slipway.stack": os.environ["SLIPWAY_STACK"]}
    return create(self, context)


def function_name(uri, known=LambdaUri.get_function_name):
    alias = re.fullmatch(r"(\w+)\.Alias", uri) if isinstance(uri, str) else None
    return alias[1] if alias else known(uri)


def change():
    container.re = Expressions()
    container.Container.create = create
    LambdaUri.get_function_name = staticmethod(function_name)


if __name__ == "__main__":
    change()
    cli(prog_name="sam")
