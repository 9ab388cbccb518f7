"""Checks the roles that the translated template gives to functions."""

BASIC = "AWSLambdaBasicExecutionRole"
WRITES = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}


def check(resources):
    """Returns a sentence for each function whose role lets it write to log groups of other stacks.

    The translator gives each role that it makes a managed policy that allows writing to all log groups. A role is bounded when its
    permissions boundary denies that for everything but what it names.
    """
    problems = []
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        role = resource["Properties"]["Role"]["Fn::GetAtt"][0]
        properties = resources[role]["Properties"]
        if not any(BASIC in str(arn) for arn in properties.get("ManagedPolicyArns", [])):
            continue
        boundary = properties.get("PermissionsBoundary", {}).get("Ref", "")
        if not denies(resources.get(boundary, {})):
            problems.append(f"{name}: its role {role} may write to all log groups of the account")
    return problems


def denies(policy):
    """Tells whether a managed policy denies writing to all log groups but those of names that begin with the stack's prefix."""
    for statement in policy.get("Properties", {}).get("PolicyDocument", {}).get("Statement", []):
        others = [str(resource) for resource in statement.get("NotResource", [])]
        if statement["Effect"] == "Deny" and WRITES <= set(statement["Action"]) and others and not any(o.endswith("log-group:*'}") for o in others):
            return True
    return False
