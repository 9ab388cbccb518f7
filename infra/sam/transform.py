"""Transforms a SAM template as CloudFormation will. Nothing is sent anywhere."""

import os

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

PARAMETERS = {"AWS::Region": "us-east-1", "AWS::Partition": "aws", "AWS::StackName": "slipway", "AWS::AccountId": "000000000000"}


def transform(path):
    """Returns the translated template of a file."""
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        # As `sam package` does: CloudFormation sees locations in S3 only.
        properties = resource.get("Properties", {})
        for name in ("CodeUri", "ContentUri", "DefinitionUri"):
            if name in properties:
                properties[name] = "s3://bucket/key"
    os.environ.setdefault("AWS_DEFAULT_REGION", PARAMETERS["AWS::Region"])
    return Translator({}, Parser()).translate(template, PARAMETERS)  # it names managed policies by ARN, so there are none to look up
