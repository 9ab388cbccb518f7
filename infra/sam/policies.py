"""Prints what the role of each function allows in the stack that `slipway-local` serves, and what
the policies of keys do, as JSON: {"roles": {function: {"policies": [document, ...], "boundary":
document}}, "resources": {ARN: document}}.

Usage: policies.py template.yaml [Parameter=value ...]
"""

import json
import sys

import quotas
from transform import PARAMETERS, transform

STACK, REGION, ACCOUNT = PARAMETERS["AWS::StackName"], PARAMETERS["AWS::Region"], PARAMETERS["AWS::AccountId"]
# The ARNs of resources whose ARNs stand in policies, by the type of the resource: table and key as
# slipway-local has them, the others with the name that a reference to them has.
ARNS = {
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{STACK}", "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/Key",
    "AWS::CodeBuild::Project": f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/NAME", "AWS::ECR::Repository": f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/NAME",
    "AWS::ECS::Cluster": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/NAME", "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/NAME",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:NAME:*", "AWS::S3::Bucket": "arn:aws:s3:::NAME",
}

EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def names_of(translated, parameters):
    """Returns what references stand for, as quotas.resolve takes it."""
    resources = translated["Resources"]
    defaults = {name: p.get("Default", "") for name, p in translated["Parameters"].items()}

    def name(logical):
        return f"{STACK}-{logical}"

    def arn(logical):
        return ARNS.get(resources[logical]["Type"], f"arn:aws:other:{REGION}:{ACCOUNT}:NAME").replace("NAME", name(logical))

    return {**defaults, **PARAMETERS, "AWS::URLSuffix": "amazonaws.com", **parameters, "of": name, "arn": arn}


def holds(condition, translated, names):
    """Evaluates a condition of the template."""
    (function, argument), = condition.items()
    if function == "Condition":
        return holds(translated["Conditions"][argument], translated, names)
    if function == "Fn::Equals":
        left, right = (str(quotas.resolve(side, names)) for side in argument)
        return left == right
    results = [holds(part, translated, names) for part in argument]
    return {"Fn::Not": not results[0], "Fn::And": all(results), "Fn::Or": any(results)}[function]


def decide(value, translated, names):
    """Returns value with the branch of each Fn::If that its condition chooses."""
    if isinstance(value, list):
        return [decide(item, translated, names) for item in value]
    if not isinstance(value, dict):
        return value
    if "Fn::If" in value:
        condition, yes, no = value["Fn::If"]
        return decide(yes if holds(translated["Conditions"][condition], translated, names) else no, translated, names)
    return {name: decide(item, translated, names) for name, item in value.items()}


def policies(translated, parameters, others=()):
    """Returns what this program prints. Of other roles than those of functions, only the named ones
    are in it."""
    resources = translated["Resources"]
    names = names_of(translated, parameters)

    def document(logical):
        return text(resources[logical]["Properties"]["PolicyDocument"])

    def text(value):
        return quotas.resolve(decide(value, translated, names), names)

    def allowed(role):
        role = decide(resources[role]["Properties"], translated, names)
        own = [text(policy["PolicyDocument"]) for policy in role.get("Policies", []) if "PolicyDocument" in policy]
        # AWS's own policies are for logs and traces, which no function writes by itself.
        shared = [document(arn["Ref"]) for arn in role.get("ManagedPolicyArns", []) if isinstance(arn, dict) and arn.get("Ref") in resources]
        boundary = role.get("PermissionsBoundary", {}).get("Ref")
        return {"policies": own + shared, "boundary": document(boundary) if boundary in resources else EVERYTHING}

    functions = {name: r["Properties"]["Role"]["Fn::GetAtt"][0] for name, r in resources.items() if r["Type"] == "AWS::Lambda::Function"}
    roles = {name: allowed(role) for name, role in {**functions, **{other: other for other in others}}.items()}
    keys = {names["arn"](name): text(r["Properties"]["KeyPolicy"]) for name, r in resources.items() if r["Type"] == "AWS::KMS::Key"}
    return {"roles": roles, "resources": keys}


if __name__ == "__main__":
    print(json.dumps(policies(transform(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:]))))
