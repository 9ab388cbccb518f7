"""Computes what AWS would count of the translated template, for one stack in one region, and
compares it with AWS's quotas.

A quota is hard where AWS says so (Lambda, IAM, CloudFormation: "Quotas" pages of each service); API
Gateway's resources are adjustable, but only for each account and region and by support. A check
fails at 80 % of a quota, so that the next feature fits. The bounds that this project sets itself
are lower, and fail when they are passed; so do lengths of names, which depend on what people
choose.

It computes neither the capacity units of the web ACL nor the metrics of the dashboard.
"""

import json
import re
from pathlib import Path

MACHINES = Path(__file__).parent.parent / "statemachines"
ACCOUNT = "123456789012"
SHARE = 0.8
LONGEST_STACK, LONGEST_PREFIX, LONGEST_REGION = 35, 21, "ap-southeast-1"  # infra/README.md (Names) says the first, and the template the second
POLICY_BOUND = 10_240  # bytes of the resource policy of a function, half of what AWS takes
PATHS_BOUND = 150  # resources of the API, half of the quota
ENVIRONMENT = 4_096  # bytes of the variables of a function
# The characters, in the longest environment, of the parameters whose length the template does not
# bound: each is as long as a value that somebody may want together with all others. A single
# parameter may be longer while others are shorter.
TEXTS = {
    "AlbListenerArn": 140, "AlbUrl": 100, "BaseUrl": 80, "ClientAddressHeader": 30, "DomainName": 72, "GitHubApp": 120, "GitHubUrl": 50, "GitHubWebhook": 120,
    "Issuers": 250, "MemberIssuers": 180, "PrivateAddresses": 60, "Quotas": 160, "TableNameOverride": 60, "Version": 40, "VpcId": 21,
    "Subnets": 3 * 25, "SecurityGroups": 2 * 21, "CdnNetworks": 4 * 19,
}
# The bytes that the policy of a resource may have, by the type of the resource, with the property
# that has the policy.
POLICIES = {"AWS::KMS::Key": ("KeyPolicy", 32_768), "AWS::S3::BucketPolicy": ("PolicyDocument", 20_480), "AWS::SQS::QueuePolicy": ("PolicyDocument", 8_192)}
# The characters that a name may have, by the type of the resource and the property.
NAMES = {
    ("AWS::ApiGateway::DomainName", "DomainName"): 512, ("AWS::ApiGateway::RestApi", "Name"): 128, ("AWS::ApiGateway::Stage", "StageName"): 128,
    ("AWS::Budgets::Budget", "Budget.BudgetName"): 100,
    ("AWS::CloudWatch::Alarm", "AlarmName"): 255, ("AWS::CloudWatch::Dashboard", "DashboardName"): 255, ("AWS::CodeBuild::Project", "Name"): 150,
    ("AWS::DynamoDB::Table", "TableName"): 255, ("AWS::ECR::Repository", "RepositoryName"): 256, ("AWS::ECS::Cluster", "ClusterName"): 255,
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "Name"): 32, ("AWS::Events::Rule", "Name"): 64, ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"): 128, ("AWS::IAM::Policy", "PolicyName"): 128,
    ("AWS::IAM::Role", "RoleName"): 64, ("AWS::KMS::Alias", "AliasName"): 256, ("AWS::Lambda::Alias", "Name"): 128, ("AWS::Lambda::Function", "FunctionName"): 64,
    ("AWS::Lambda::LayerVersion", "LayerName"): 140, ("AWS::Logs::LogGroup", "LogGroupName"): 512, ("AWS::S3::Bucket", "BucketName"): 63,
    ("AWS::SQS::Queue", "QueueName"): 80, ("AWS::StepFunctions::StateMachine", "StateMachineName"): 80,
}


def resolve(value, names):
    """Returns value with its intrinsic functions replaced by texts as long as the real ones. !If
    takes the longer branch."""
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
        if function == "Fn::FindInMap" and argument[0] in names.get("mappings", {}):
            return max((str(values[argument[2]]) for values in names["mappings"][argument[0]].values()), key=len)
        if function.startswith("Fn::"):
            return resolve(argument, names)
    return {key: resolve(item, names) for key, item in value.items() if item != {"Ref": "AWS::NoValue"}}


def substitute(name, names):
    if "." in name:
        return names["arn"](name.split(".")[0])
    return resolve({"Ref": name}, names)


def physical(stack, logical):
    """Returns a name as CloudFormation makes it of a logical id: at most 64 characters, the last of
    them random."""
    return f"{stack}-{logical}"[:51] + "-AbCdEfGhIjKl"


def names_of(stack, region):
    return {
        "AWS::StackName": stack, "NamePrefix": "x" * LONGEST_PREFIX, "AWS::Region": region, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
        "of": lambda logical: physical(stack, logical),
        "arn": lambda logical: f"arn:aws:service:{region}:{ACCOUNT}:resource/{physical(stack, logical)}",
    }


def longest_value(name, parameter):
    """Returns the longest value of a parameter that the longest environment has room for, or None
    if no bound is known."""
    if "AllowedValues" in parameter:
        return max((str(value) for value in parameter["AllowedValues"]), key=len)
    if parameter.get("Type") == "Number":
        return str(parameter.get("MaxValue", 10**9))
    return "x" * TEXTS[name] if name in TEXTS else None


def longest_names(translated, region):
    """Returns the names of the stack with the longest name, and the longest values of all
    parameters."""
    stack = "s" * LONGEST_STACK
    values = {name: longest_value(name, parameter) for name, parameter in translated.get("Parameters", {}).items()}
    roles = {name for name, resource in translated["Resources"].items() if resource["Type"] == "AWS::IAM::Role"}
    names = names_of(stack, region)
    return {name: value for name, value in values.items() if value is not None} | names | {
        "arn": lambda logical: f"arn:aws:iam::{ACCOUNT}:role/{physical(stack, logical)}" if logical in roles else names["arn"](logical),
        "mappings": translated.get("Mappings", {}),
    }


def refers(value):
    """Yields the names of what a value refers to."""
    if isinstance(value, dict) and isinstance(value.get("Ref"), str):
        yield value["Ref"]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from refers(part)
    if isinstance(value, dict) and "Fn::Sub" in value:
        yield from re.findall(r"\$\{(\w+)\}", json.dumps(value["Fn::Sub"]))


def environments(translated, region):
    """Yields (what, value, bound) for the environment of each function with the longest names, and
    for each parameter in an environment of which no bound is known."""
    longest, parameters, unbounded = longest_names(translated, region), translated.get("Parameters", {}), set()
    for logical, resource in translated["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Function":
            variables = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
            yield f"bytes of the environment of {logical} with the longest names", size(resolve(variables, longest)), ENVIRONMENT
            unbounded |= {name for name in refers(variables) if name in parameters and name not in longest}
    for name in sorted(unbounded):
        yield f"parameters with the name {name} in environments, for which TEXTS has no length", 1, 0


def size(document):
    return len(json.dumps(document, separators=(",", ":")))


def resource_policies(resources, names):
    """Returns the bytes of each function's resource policy: a statement for each
    AWS::Lambda::Permission, as Lambda stores it."""
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


def definition(properties, names):
    """Returns the definition of a state machine, which a transformed template has by the name of
    its file, with its substitutions."""
    if "DefinitionS3Location" not in properties:
        return json.dumps(properties.get("DefinitionString", properties.get("Definition", "")))
    text = (MACHINES / properties["DefinitionS3Location"]["Key"]).read_text(encoding="utf-8")
    for name, value in resolve(properties.get("DefinitionSubstitutions", {}), names).items():
        text = text.replace("${%s}" % name, value)
    return text


def texts(value):
    """Yields all texts in a value."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(part)


def given_names(resource):
    """Yields (property, value, most) for each name that a template gives to a resource. A type
    without a bound has a bound of 0."""
    most = {name: bound for (kind, name), bound in NAMES.items() if kind == resource["Type"]}
    for name in most or ("Name", resource["Type"].rpartition("::")[2] + "Name"):
        value = resource.get("Properties", {})
        for part in name.split("."):
            value = (value or {}).get(part)
        if value is not None:
            yield name, value, most.get(name, 0)


def bounds(translated, nodes, stack, region):
    """Yields (what, value, bound) for what must not be above its bound."""
    names = names_of(stack, region)
    yield "resources of the API", len(nodes), PATHS_BOUND
    yield from environments(translated, region)
    for function, count in sorted(resource_policies(translated["Resources"], names).items()):
        yield f"bytes of the resource policy of {function}", count, POLICY_BOUND
    longest = names_of("s" * LONGEST_STACK, region)
    longest["AlarmTopic"] = f"arn:aws:sns:{region}:{ACCOUNT}:" + "t" * 60  # as long as MonthlyBudget takes it
    for logical, resource in translated["Resources"].items():
        for name, value, most in given_names(resource):
            yield f"characters of the {name} of {logical}{'' if most else ', for which NAMES has no bound'}", len(str(resolve(value, longest))), most
    if re.fullmatch(translated.get("Parameters", {}).get("NamePrefix", {}).get("AllowedPattern", ""), longest["NamePrefix"] + "x"):
        yield "characters of NamePrefix that its pattern allows", LONGEST_PREFIX + 1, LONGEST_PREFIX
    # CloudFormation cuts a name that is too long, and then no pattern in a policy matches it.
    for logical in sorted({m[1] for text in texts(translated) for m in re.finditer(r"\$\{AWS::StackName\}-(\w+)-\*", text)}):
        yield f"characters of the name of {logical} that a policy names", len(f"{longest['AWS::StackName']}-{logical}-AbCdEfGhIjKl"), 64


def measure(translated, nodes, stack, region, overrides):
    """Yields (what, value, quota) for each quota that a template can exceed."""
    names = names_of(stack, region)
    parameters = translated.get("Parameters", {})
    given = {name: overrides.get(name, str(parameter.get("Default", ""))) for name, parameter in parameters.items()}
    resources = translated["Resources"]
    yield "resources of the stack", len(resources), 500
    yield "bytes of the template", size(translated), 1_000_000
    yield "parameters of the stack", len(parameters), 200
    yield "outputs of the stack", len(translated.get("Outputs", {})), 200
    yield "resources of the API", len(nodes), 300
    for function, count in sorted(resource_policies(resources, names).items()):
        yield f"bytes of the resource policy of {function}", count, 20_480
    for logical, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function":
            variables = resolve(properties.get("Environment", {}).get("Variables", {}), given | names)
            yield f"bytes of the environment of {logical}", size(variables), ENVIRONMENT
        elif resource["Type"] == "AWS::IAM::Role":
            inline = sum(size(resolve(policy["PolicyDocument"], names)) for policy in properties.get("Policies", []) if "PolicyDocument" in policy)
            yield f"bytes of the inline policies of {logical}", inline, 10_240
            yield f"bytes of the trust policy of {logical}", size(resolve(properties["AssumeRolePolicyDocument"], names)), 2_048
            yield f"managed policies of {logical}", len(properties.get("ManagedPolicyArns", [])), 10
        elif resource["Type"] in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
            yield f"bytes of the managed policy {logical}", size(resolve(properties["PolicyDocument"], names)), 6_144
        elif resource["Type"] in POLICIES:
            document, most = POLICIES[resource["Type"]]
            yield f"bytes of the policy of {logical}", size(resolve(properties[document], names)), most
        elif resource["Type"] == "AWS::CloudWatch::Alarm":
            yield f"metrics of the alarm {logical}", sum("MetricStat" in metric for metric in properties.get("Metrics", [])), 10
        elif resource["Type"] == "AWS::CodeDeploy::DeploymentGroup":
            yield f"alarms of {logical}", len(resolve(properties.get("AlarmConfiguration", {}), names).get("Alarms", [])), 10
        elif resource["Type"] == "AWS::StepFunctions::StateMachine":
            yield f"bytes of the definition of {logical}", len(definition(properties, names)), 1_048_576


def check(translated, nodes, stack, region, overrides):
    """Checks the stack with these values of parameters. Prints what comes nearest to its quota, and
    returns a sentence for each value above 80 % of its quota."""
    rows = sorted(measure(translated, nodes, stack, region, overrides), key=lambda row: row[1] / row[2], reverse=True)
    for what, value, quota in rows[:3]:
        print(f"{stack} in {region}: {what}: {value} of {quota}")
    problems = [f"{stack} in {region}: {what}: {value}, more than 80 % of {quota}" for what, value, quota in rows if value > SHARE * quota]
    return problems + exceeded(translated, nodes, stack, region)


def exceeded(translated, nodes, stack, region):
    """Returns a sentence for each value above its bound."""
    return [f"{stack} in {region}: {what}: {value}, more than {bound}" for what, value, bound in bounds(translated, nodes, stack, region) if value > bound]
