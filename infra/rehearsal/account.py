"""Makes the network and the stack of the environment `trial` in an AWS account, deploys an agent to
it, measures when its answers begin, and deletes everything, records included. It is for an account
in which nothing else has names that begin with `slipwaytrial`.

It needs AWS credentials of an administrator, Go, make and Python 3. The account pays for half an
hour of a NAT gateway, a load balancer and a Fargate task, and for a few builds: less than $1; the
deleted KMS key costs nothing. `--keep` leaves everything as it is, for a person to look at;
`--delete` only deletes. `--push-token` also looks whether a token to push images ends with the
session that it was made in, which takes a quarter of an hour.

Usage: .tools/sam/bin/python infra/rehearsal/account.py [--keep | --delete] [--push-token]
"""

import base64
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from api import ROOT, Api, Failed, await_answer, clear, make_key, prove

sys.path.insert(0, str(ROOT / "infra" / "sam"))
from environment import Environment

TRIAL = Environment("trial")
PATIENCE = 1800  # seconds; a service that drains and the network interfaces of functions take many minutes to go
PROGRAMS = {**os.environ, "PATH": f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}", "SAM_CLI_TELEMETRY": "0", "CI": "true", "AWS_REGION": TRIAL.region}


def client(service, **keys):
    return boto3.client(service, region_name=TRIAL.region, **keys)


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


SHORTEST = 900  # seconds; STS makes no shorter session


@contextlib.contextmanager
def pusher(clients, repository):
    """Makes a role that may push to one repository, and yields credentials of its shortest session.
    Deletes the role afterwards."""
    iam, name = clients("iam"), f"{TRIAL.stack}-push-check"
    account = clients("sts").get_caller_identity()["Account"]

    def document(**rest):
        return json.dumps({"Version": "2012-10-17", "Statement": rest.pop("more", []) + [{"Effect": "Allow", **rest}]})

    def assume():
        try:
            return clients("sts").assume_role(RoleArn=role, RoleSessionName="push", DurationSeconds=SHORTEST)["Credentials"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDenied":
                raise
            return None  # a new role is not known everywhere at once

    trust = document(Principal={"AWS": f"arn:{repository.split(':')[1]}:iam::{account}:root"}, Action="sts:AssumeRole")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    try:
        anywhere = {"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"}
        iam.put_role_policy(RoleName=name, PolicyName="push", PolicyDocument=document(Action="ecr:*", Resource=repository, more=[anywhere]))
        yield await_answer(assume, bool, 120)
    finally:
        with contextlib.suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role_policy(RoleName=name, PolicyName="push")
        iam.delete_role(RoleName=name)


def list_tags(registry, repository, token):
    """Returns the status with which a registry answers the holder of a token who asks for the tags
    of a repository."""
    request = urllib.request.Request(f"https://{registry}/v2/{repository}/tags/list", headers={"Authorization": f"Basic {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def check_push_token(clients, uri, tell, ask=list_tags, wait=time.sleep):
    """Looks whether a token for the registry ends with the session that it was made in, as the API
    says to who pushes, which infra/aws.md lists as unproven."""
    registry, _, name = uri.partition("/")
    repository = clients("ecr").describe_repositories(repositoryNames=[name])["repositories"][0]["repositoryArn"]
    with pusher(clients, repository) as session:
        keys = {"aws_access_key_id": session["AccessKeyId"], "aws_secret_access_key": session["SecretAccessKey"], "aws_session_token": session["SessionToken"]}
        given = await_answer(lambda: token_of(clients, keys, registry, name, ask), bool, 120)
        tell(f"a token to push is said to end at {given['expiresAt']}, its session at {session['Expiration']}")
        wait(max(0, session["Expiration"].timestamp() - time.time()) + 60)
        if (status := ask(registry, name, given["authorizationToken"])) not in (401, 403):
            raise Failed(f"a token to push outlives its session: the registry answers {status}. Say so in infra/aws.md, at its unproven facts")
    tell("a token to push ends with its session")


def token_of(clients, keys, registry, name, ask):
    """Returns a token that the registry takes, or None while the role may not yet do what its
    policy says."""
    try:
        given = clients("ecr", **keys).get_authorization_token()["authorizationData"][0]
    except ClientError as error:
        if "AccessDenied" not in str(error):
            raise
        return None
    username, _, _ = base64.b64decode(given["authorizationToken"]).decode().partition(":")
    return given if username == "AWS" and ask(registry, name, given["authorizationToken"]) == 200 else None


def scale(api, most):
    """Lets the agent have several replicas. Returns the id of the revision that has them."""
    [deployment] = api.call(200, "GET", "/v2/deployments")["resources"]
    path = f"/v2/deployments/{deployment['id']}"
    api.call(200, "PATCH", path, {"source_config": {"resource_spec": {"min_scale": 1, "max_scale": most}}})
    served = await_answer(lambda: api.call(200, "GET", path), lambda d: d["active_revision_id"] == d["latest_revision_id"] != deployment["active_revision_id"], PATIENCE)
    return served["active_revision_id"]


MEASURED = 900  # seconds; CloudWatch has the first values of a service after a few minutes


def check_scaling(clients, cluster, service, tell, wait=await_answer):
    """Looks whether CloudWatch reads the expression by which a service scales, and counts its tasks
    as ECS does, which infra/aws.md lists as unproven.

    AWS documents no more that the sample count of the CPU utilization is the number of tasks. It
    counts more if the service has metrics each 20 s.
    """
    policies = clients("application-autoscaling").describe_scaling_policies(ServiceNamespace="ecs", ResourceId=f"service/{cluster}/{service}")["ScalingPolicies"]
    [metrics] = [m for p in policies if (m := p["TargetTrackingScalingPolicyConfiguration"].get("CustomizedMetricSpecification", {}).get("Metrics"))]
    queries = [{**m, **({"MetricStat": {**m["MetricStat"], "Period": 60}} if "MetricStat" in m else {"Period": 60}), "ReturnData": True} for m in metrics]

    def measure():
        now = time.time()
        results = clients("cloudwatch").get_metric_data(MetricDataQueries=queries, StartTime=now - MEASURED, EndTime=now)["MetricDataResults"]
        return {result["Id"]: result["Values"] for result in results}

    measured = wait(measure, lambda values: values["tasks"] and values["load"], MEASURED)
    [described] = clients("ecs").describe_services(cluster=cluster, services=[service])["services"]
    # The newest value may be of a minute that is not over.
    if described["runningCount"] not in measured["tasks"][:2]:
        raise Failed(f"{described['runningCount']} tasks run, and CloudWatch counted {measured['tasks']}, the newest first. Say so in infra/aws.md, at its unproven facts")
    tell(f"CloudWatch counts the tasks of the agent as ECS does, and the runs for each of them are {measured['load'][0]:g}")


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


def main(*choices):
    began, api = time.monotonic(), None

    def tell(what):
        print(f"{time.monotonic() - began:5.0f} s  {what}", flush=True)

    try:
        if "--delete" not in choices:
            api = make(tell)
            prove(api, tell)
            if alarms := ringing():
                raise Failed(f"these alarms have gone off: {alarms}")
            tell("no alarm has gone off")
            made, revision = outputs(TRIAL.stack), scale(api, 2)
            tell("the agent may have two replicas")
            check_scaling(client, made["ClusterName"], f"{made['ClusterName']}-{revision}", tell)
            if "--push-token" in choices:
                check_push_token(client, outputs(TRIAL.stack)["RepositoryUri"], tell)
    finally:
        if "--keep" not in choices:
            delete(api, tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
