"""Transforms a template as CloudFormation will, if it is one of SAM, and prints the result as JSON.
Nothing is sent anywhere.

Usage: transform.py template.yaml [Parameter=value ...]
"""

import json
import os
import sys
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

PARAMETERS = {"AWS::Region": "us-east-1", "AWS::Partition": "aws", "AWS::StackName": "slipway", "AWS::AccountId": "000000000000"}


def transform(path, parameters=None, code=""):
    """Returns the translated template of a file, for parameters; SAM itself decides by some. The
    keys of the functions' code begin with code: SAM knows new code by its key."""
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    if "Transform" not in template:
        return template
    for resource in template["Resources"].values():
        # As `sam package` does: CloudFormation sees locations in S3 only. The key is the name of
        # the folder or file.
        properties = resource.get("Properties", {})
        for name in ("CodeUri", "ContentUri", "DefinitionUri"):
            if name in properties:
                properties[name] = f"s3://bucket/{code if name == 'CodeUri' else ''}{Path(properties[name]).name}"
    os.environ.setdefault("AWS_DEFAULT_REGION", PARAMETERS["AWS::Region"])
    return Translator({}, Parser()).translate(template, PARAMETERS | (parameters or {}))  # it names managed policies by ARN, so there are none to look up


if __name__ == "__main__":
    print(json.dumps(transform(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:]))))
