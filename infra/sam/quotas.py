"""Computes what AWS would count of the translated template, for one stack in one region, and compares it with AWS's quotas.

A quota is hard where AWS says so (Lambda, IAM, CloudFormation: "Quotas" pages of each service); API Gateway's resources are
adjustable, but only for each account and region and by support. A check fails at 80 % of a quota, so that the next feature fits.
"""

import json
import re

ACCOUNT = "123456789012"
SHARE = 0.8


def resolve(value, names):
    """Returns value with its intrinsic functions replaced by texts as long as the real ones. !If takes the longer branch."""
    if isinstance(value, list):
        return [resolve(item, names) for item in value if item != {"Ref": "AWS::NoValue"}]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (function, argument), = value.items()
        if function == "Ref":
            return names.get(argument, names["of"](argument))
        if function == "Fn::GetAtt":
            return names["arn"](argument[0] if isinstance(argument, list) else argument.split(".")[0])
        if function == "Fn::Sub":
            text, own = (argument, {}) if isinstance(argument, str) else (argument[0], resolve(argument[1], names))
            return re.sub(r"\$\{([^}!]+)\}", lambda m: str(own.get(m[1]) or substitute(m[1], names)), text)
        if function == "Fn::Join":
            parts = resolve(argument[1], names)
            return argument[0].join(str(part) for part in parts) if isinstance(parts, list) else str(parts)
        if function == "Fn::Split":
            return str(resolve(argument[1], names)).split(argument[0])
        if function == "Fn::Select":
            return resolve(argument[1], names)[int(argument[0])]
        if function == "Fn::If":
            branches = [resolve(branch, names) for branch in argument[1:] if branch != {"Ref": "AWS::NoValue"}]
            return max(branches, key=lambda branch: len(json.dumps(branch)), default="")
        if function.startswith("Fn::"):
            return resolve(argument, names)
    return {key: resolve(item, names) for key, item in value.items() if item != {"Ref": "AWS::NoValue"}}


def substitute(name, names):
    if "." in name:
        return names["arn"](name.split(".")[0])
    return resolve({"Ref": name}, names)


def physical(stack, logical):
    """Returns a name as CloudFormation makes it of a logical id: at most 64 characters, the last of them random."""
    return f"{stack}-{logical}"[:51] + "-AbCdEfGhIjKl"


def names_of(stack, region):
    return {
        "AWS::StackName": stack, "NamePrefix": "x" * 21, "AWS::Region": region, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
        "of": lambda logical: physical(stack, logical),
        "arn": lambda logical: f"arn:aws:service:{region}:{ACCOUNT}:resource/{physical(stack, logical)}",
    }


def size(document):
    return len(json.dumps(document, separators=(",", ":")))


def resource_policies(resources, names):
    """Returns the bytes of each function's resource policy: a statement for each AWS::Lambda::Permission, as Lambda stores it."""
    sizes = {}
    for logical, resource in resources.items():
        if resource["Type"] != "AWS::Lambda::Permission":
            continue
        properties = resource["Properties"]
        named = properties["FunctionName"]
        function = named.get("Ref") or named["Fn::GetAtt"][0]
        place = names["of"](function)
        if resources.get(function, {}).get("Type") == "AWS::Lambda::Alias":  # each has a policy of its own
            alias = resources[function]["Properties"]
            place = f"{names['of'](alias['FunctionName']['Ref'])}:{alias['Name']}"
        statement = {
            "Sid": names["of"](logical), "Effect": "Allow", "Principal": {"Service": properties["Principal"]}, "Action": properties["Action"],
            "Resource": f"arn:aws:lambda:{names['AWS::Region']}:{ACCOUNT}:function:{place}",
            "Condition": {"ArnLike": {"AWS:SourceArn": resolve(properties.get("SourceArn", ""), names)}},
        }
        sizes[function] = sizes.get(function, len('{"Version":"2012-10-17","Id":"default","Statement":[]}')) + size(statement) + 1
    return sizes


def measure(translated, nodes, stack, region):
    """Yields (what, value, quota) for each quota that a template can exceed."""
    names = names_of(stack, region)
    resources = translated["Resources"]
    yield "resources of the stack", len(resources), 500
    yield "bytes of the template", size(translated), 1_000_000
    yield "parameters of the stack", len(translated.get("Parameters", {})), 200
    yield "outputs of the stack", len(translated.get("Outputs", {})), 200
    yield "resources of the API", len(nodes), 300
    for function, count in sorted(resource_policies(resources, names).items()):
        yield f"bytes of the resource policy of {function}", count, 20_480
    for logical, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function":
            variables = resolve(properties.get("Environment", {}).get("Variables", {}), names)
            yield f"bytes of the environment of {logical}", size(variables), 4_096
        elif resource["Type"] == "AWS::IAM::Role":
            inline = sum(size(resolve(policy["PolicyDocument"], names)) for policy in properties.get("Policies", []) if "PolicyDocument" in policy)
            yield f"bytes of the inline policies of {logical}", inline, 10_240
            yield f"bytes of the trust policy of {logical}", size(resolve(properties["AssumeRolePolicyDocument"], names)), 2_048
            yield f"managed policies of {logical}", len(properties.get("ManagedPolicyArns", [])), 10
        elif resource["Type"] == "AWS::IAM::ManagedPolicy":
            yield f"bytes of the managed policy {logical}", size(resolve(properties["PolicyDocument"], names)), 6_144
        elif resource["Type"] == "AWS::CloudWatch::Alarm":
            yield f"metrics of the alarm {logical}", sum("MetricStat" in metric for metric in properties.get("Metrics", [])), 10
        elif resource["Type"] == "AWS::CodeDeploy::DeploymentGroup":
            yield f"alarms of {logical}", len(resolve(properties.get("AlarmConfiguration", {}), names).get("Alarms", [])), 10
        elif resource["Type"] == "AWS::StepFunctions::StateMachine":
            yield f"bytes of the definition of {logical}", size(properties.get("DefinitionString", properties.get("Definition", ""))), 1_048_576


def check(translated, nodes, stack, region):
    """Prints what comes nearest to its quota, and returns a sentence for each value above 80 % of its quota."""
    rows = sorted(measure(translated, nodes, stack, region), key=lambda row: row[1] / row[2], reverse=True)
    for what, value, quota in rows[:3]:
        print(f"{stack} in {region}: {what}: {value} of {quota}")
    return [f"{stack} in {region}: {what}: {value}, more than 80 % of {quota}" for what, value, quota in rows if value > SHARE * quota]
