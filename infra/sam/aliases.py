"""Checks in a translated template that everything calls a function by its alias, which is what a
deployment shifts: integrations, authorizers, permissions, rules and state machines. A caller of the
function itself would skip the shift, and would keep to code that is rolled back. And it checks that
alarms watch each version that calls are shifted to, and that CodeDeploy may shift the calls of each
function."""

import fnmatch
import re

import quotas

ALIAS = "live"
# Resources that are about a function and do not call it. An alarm names the function in its
# dimensions.
ABOUT = {"AWS::Lambda::Alias", "AWS::Lambda::Version", "AWS::Lambda::EventInvokeConfig", "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}


def check(resources):
    """Returns a sentence for each function without an alias, and for each resource that refers to a
    function instead of its alias."""
    functions = {name for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Function"}
    aliases = {alias_of(resource): name for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Alias" and resource["Properties"].get("Name") == ALIAS}
    problems = [f"{name} has no alias {ALIAS}" for name in sorted(functions - aliases.keys())]
    for name, resource in resources.items():
        if resource["Type"] not in ABOUT:
            called = sorted(functions & set(references(resource.get("Properties", {}))))
            problems += [f"{name} refers to the function {function} and not to its alias" for function in called]
        if resource["Type"] == "AWS::Lambda::EventInvokeConfig" and resource["Properties"].get("Qualifier") != ALIAS:
            problems.append(f"{name} is not about the alias")
    return problems + uninvited(resources, aliases) + unwatched(resources, aliases) + unshiftable(resources, aliases)


def unwatched(resources, aliases):
    """Returns a sentence for each function whose calls are shifted to a version that no alarm of
    its deployment group watches."""
    problems = []
    for function, alias in sorted(aliases.items()):
        shift = resources[alias].get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if shift is None:
            continue
        group = resources[shift["DeploymentGroupName"]["Ref"]]["Properties"]
        alarms = {name for name in references(group.get("AlarmConfiguration", {})) if resources.get(name, {}).get("Type") == "AWS::CloudWatch::Alarm"}
        watched = {name for alarm in alarms for name in references(resources[alarm]["Properties"].get("Metrics", []))}
        version = resources[alias]["Properties"]["FunctionVersion"]["Fn::GetAtt"][0]
        if version not in watched:
            problems.append(f"no alarm of the deployment watches the new version of {function}")
    return problems


def uninvited(resources, aliases):
    """Returns a sentence for each alias that API Gateway or EventBridge calls and that does not
    admit the service."""
    admitted = {(principal, alias) for resource in resources.values() if resource["Type"] == "AWS::Lambda::Permission"
                for principal in [resource["Properties"]["Principal"]] for alias in references(resource["Properties"]["FunctionName"])}
    callers = {"AWS::ApiGateway::RestApi": "apigateway.amazonaws.com", "AWS::Events::Rule": "events.amazonaws.com"}
    problems = []
    for name, resource in resources.items():
        service = callers.get(resource["Type"])
        for alias in sorted(set(references(resource.get("Properties", {}))) & set(aliases.values())) if service else []:
            if (service, alias) not in admitted:
                problems.append(f"{name} calls {alias}, which does not admit {service}")
    return problems


def unshiftable(resources, aliases):
    """Returns a sentence for each function whose calls are to be shifted by a role that may not
    change its alias. The stack's name has the longest allowed length."""
    problems, names = [], quotas.names_of("s" * quotas.LONGEST_STACK, "us-east-1")
    for function, alias in sorted(aliases.items()):
        shift = resources[alias].get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if shift is None:
            continue
        role = resources[resources[shift["DeploymentGroupName"]["Ref"]]["Properties"]["ServiceRoleArn"]["Fn::GetAtt"][0]]["Properties"]
        statements = [s for policy in role.get("Policies", []) for s in quotas.resolve(policy["PolicyDocument"], names)["Statement"] if "lambda:UpdateAlias" in s["Action"]]
        ours = f"arn:aws:lambda:us-east-1:{quotas.ACCOUNT}:function:{names['of'](function)}:{ALIAS}"
        if not any(fnmatch.fnmatchcase(ours, pattern) for s in statements for pattern in s["Resource"]):
            problems.append(f"the role of CodeDeploy may not shift the calls of {function}")
    return problems


def alias_of(alias):
    return alias["Properties"]["FunctionName"]["Ref"]


def references(value):
    """Yields the names of all resources that a value refers to."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
        return
    if not isinstance(value, dict):
        return
    for function, argument in value.items():
        if function == "Ref":
            yield argument
        elif function == "Fn::GetAtt":
            yield argument[0] if isinstance(argument, list) else argument.split(".")[0]
        elif function == "Fn::Sub":
            text = argument if isinstance(argument, str) else argument[0]
            yield from (name.split(".")[0] for name in re.findall(r"\$\{([^}!]+)\}", text))
            yield from references([] if isinstance(argument, str) else argument[1])
        else:
            yield from references(argument)
