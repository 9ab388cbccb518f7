"""Checks the roles that the translated template gives to functions."""

BASIC, IN_VPC = "AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"
WRITES = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}
INTERFACES = {"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}


def check(resources):
    """Returns a sentence for each function whose role lets it write to log groups of other stacks,
    or change network interfaces of the account.

    The translator gives each role that it makes a managed policy that allows writing to all log
    groups and, in a VPC, one that allows Lambda to make network interfaces. A role is bounded when
    its permissions boundary denies the first for everything but what it names, and the second to
    functions.
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
        if any(IN_VPC in str(arn) for arn in properties["ManagedPolicyArns"]) and not keeps_interfaces(resources.get(boundary, {})):
            problems.append(f"{name}: its role {role} may change network interfaces of the account")
    return problems


def statements(policy):
    return policy.get("Properties", {}).get("PolicyDocument", {}).get("Statement", [])


def keeps_interfaces(policy):
    """Tells whether a managed policy denies functions to change network interfaces. Lambda itself,
    which makes them, is no function."""
    return any(
        statement["Effect"] == "Deny" and INTERFACES <= set(statement["Action"]) and statement.get("Resource") == "*"
        and str(statement.get("Condition", {}).get("ArnLike", {}).get("lambda:SourceFunctionArn")).endswith(":function:*'}")
        for statement in statements(policy))


def denies(policy):
    """Tells whether a managed policy denies writing to all log groups but those of names that begin
    with the stack's prefix."""
    for statement in statements(policy):
        others = [str(resource) for resource in statement.get("NotResource", [])]
        if statement["Effect"] == "Deny" and WRITES <= set(statement["Action"]) and others and not any(o.endswith("log-group:*'}") for o in others):
            return True
    return False
