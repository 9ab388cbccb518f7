"""Makes the network and the stack of the environment `trial` in an AWS account, deploys an agent to it, measures when its answers begin, and deletes
everything, records included. It is for an account in which nothing else has names that begin with `slipwaytrial`.

It needs AWS credentials of an administrator, Go, make and Python 3. The account pays for half an hour of a NAT gateway, a load balancer and a Fargate
task, and for a few builds: less than $1; the deleted KMS key costs nothing. `--keep` leaves everything as it is, for a person to look at;
`--delete` only deletes.

Usage: .tools/sam/bin/python infra/rehearsal/account.py [--keep | --delete]
"""

import os
import subprocess
import sys
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from api import ROOT, Api, Failed, clear, make_key, prove

sys.path.insert(0, str(ROOT / "infra" / "sam"))
from environment import Environment  # noqa: E402 - the path of the module is known only now

TRIAL = Environment("trial")
PATIENCE = 1800  # seconds; a service that drains and the network interfaces of functions take many minutes to go
PROGRAMS = {**os.environ, "PATH": f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}", "SAM_CLI_TELEMETRY": "0", "CI": "true", "AWS_REGION": TRIAL.region}


def client(service):
    return boto3.client(service, region_name=TRIAL.region)


def run(*command):
    subprocess.run(command, cwd=ROOT, env=PROGRAMS, check=True, stdout=sys.stderr)


def outputs(stack):
    """Returns the outputs of a stack, or nothing if there is no such stack."""
    try:
        found = client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return {}
        raise
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


def kept(stack):
    """Returns the names of what outlives the stack, as (type, name)."""
    pages = client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    return [(r["ResourceType"], r["PhysicalResourceId"]) for page in pages for r in page["StackResourceSummaries"] if r["ResourceType"] in ERASERS and r.get("PhysicalResourceId")]


def erase_table(clients, name):
    clients("dynamodb").delete_table(TableName=name)


def erase_bucket(clients, name):
    s3 = clients("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
        for stored in page.get("Contents", []):
            s3.delete_object(Bucket=name, Key=stored["Key"])
    s3.delete_bucket(Bucket=name)


def erase_key(clients, name):
    clients("kms").schedule_key_deletion(KeyId=name, PendingWindowInDays=7)


def erase_layer(clients, arn):
    layer = arn.rpartition(":")[0]
    for version in clients("lambda").list_layer_versions(LayerName=layer)["LayerVersions"]:
        clients("lambda").delete_layer_version(LayerName=layer, VersionNumber=version["Version"])


# The resources of the stack that CloudFormation retains.
ERASERS = {
    "AWS::DynamoDB::Table": erase_table, "AWS::KMS::Key": erase_key, "AWS::Lambda::LayerVersion": erase_layer, "AWS::S3::Bucket": erase_bucket,
}


def erase(clients, resources):
    """Deletes resources. Returns those that could not be deleted, as (resource, error)."""
    remaining = []
    for kind, name in resources:
        try:
            ERASERS[kind](clients, name)
        except (BotoCoreError, ClientError) as error:
            remaining.append(((kind, name), error))
    return remaining


def make(tell):
    """Makes the network and the stack. Returns its API."""
    run("make", "build")
    run("make", "network", "CONFIG=trial")
    tell("the network is there")
    run("make", "deploy", "CONFIG=trial", "NETWORK=1")
    tell("the stack is there")
    made = outputs(TRIAL.stack)
    return Api(made["ApiUrl"], make_key(made, PROGRAMS))


def ringing():
    """Returns the names of the stack's alarms that have gone off."""
    pages = client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{TRIAL.stack}-", StateValue="ALARM")
    return [alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"]]


def delete(api, tell):
    """Deletes everything. Deployments go first: what AWS has of them is no part of the stack."""
    if made := outputs(TRIAL.stack):
        clear(api or Api(made["ApiUrl"], make_key(made, PROGRAMS)), PATIENCE)
        tell("the deployments are gone")
    remaining = []
    for stack in (TRIAL.stack, TRIAL.network):
        try:
            left = kept(stack)
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            continue
        tell(f"the stack {stack} will leave these resources, which are deleted after it: {left}")
        run("sam", "delete", "--stack-name", stack, "--region", TRIAL.region, "--no-prompts")
        failed = erase(client, left)
        for (kind, name), error in failed:
            tell(f"{kind} {name} could not be deleted: {error}")
        remaining += failed
        tell(f"the stack {stack} is gone, and {len(left) - len(failed)} of the {len(left)} resources that it left")
    if remaining:
        raise Failed(f"delete these by hand: {[resource for resource, _ in remaining]}")


def main(choice=""):
    began, api = time.monotonic(), None

    def tell(what):
        print(f"{time.monotonic() - began:5.0f} s  {what}", flush=True)

    try:
        if choice != "--delete":
            api = make(tell)
            prove(api, tell)
            if alarms := ringing():
                raise Failed(f"these alarms have gone off: {alarms}")
            tell("no alarm has gone off")
    finally:
        if choice != "--keep":
            delete(api, tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
