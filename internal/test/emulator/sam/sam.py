"""Runs the SAM CLI with two changes. Its wait for the end of a function's log expects one line before REPORT and stalls for a second when lines
arrive together, so that one match becomes a search. And each container gets a label that names the stack, by which it can be found later."""

import os
import re

import samcli.local.docker.container as container
from samcli.cli.main import cli


class Expressions:
    def __getattr__(self, name):
        return getattr(re, name)

    def match(self, pattern, text, *flags):
        return (re.search if "REPORT RequestId" in pattern else re.match)(pattern, text, *flags)


def create(self, context, create=container.Container.create):
    self._labels = {**self._labels, "slipway.stack": os.environ["SLIPWAY_STACK"]}
    return create(self, context)


container.re = Expressions()
container.Container.create = create
cli(prog_name="sam")
