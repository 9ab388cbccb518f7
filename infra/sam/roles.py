"""Checks the roles that the translated template gives to functions."""

BASIC, IN_VPC = "AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"
WRITES = {"logs:CreateLogStream", "logs:PutLogEvents"}
INTERFACES = {"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}


def check(resources):
    """Returns a sentence for each role that cannot have the boundary of an organization, and for
    each function whose role lets it write to log groups of other stacks, or change network
    interfaces of the account.

    The translator gives each role that it makes a managed policy that allows writing to all log
    groups and, in a VPC, one that allows Lambda to make network interfaces. A role is bounded when
    its permissions boundary denies the first for everything but what it names, and the second to
    functions. With the boundary of an organization, a policy of the role denies the same.
    """
    problems = [
        f"{name}: it cannot have the parameter PermissionsBoundary as its boundary"
        for name, resource in resources.items() if resource["Type"] == "AWS::IAM::Role" and boundaries(resource)[0] != {"Ref": "PermissionsBoundary"}]
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        role = resource["Properties"]["Role"]["Fn::GetAtt"][0]
        properties = resources[role]["Properties"]
        if not any(BASIC in str(arn) for arn in properties.get("ManagedPolicyArns", [])):
            continue
        boundary = resources.get(boundaries(resources[role])[1].get("Ref", ""), {})
        if not denies(boundary):
            problems.append(f"{name}: its role {role} may write to all log groups of the account")
        if any(IN_VPC in str(arn) for arn in properties["ManagedPolicyArns"]) and not keeps_interfaces(boundary):
            problems.append(f"{name}: its role {role} may change network interfaces of the account")
        if not denied_beside(resources, role, boundary):
            problems.append(f"{name}: with another boundary, no policy of its role {role} denies what the stack's own boundary denies")
    return problems


def boundaries(role):
    """Returns the boundary of a role if the parameter PermissionsBoundary is set, and otherwise."""
    boundary = role["Properties"].get("PermissionsBoundary", {})
    condition, given, own = boundary.get("Fn::If", ["", {}, boundary])
    return (given if condition == "HasBoundary" else {}), own


def denied_beside(resources, role, boundary):
    """Tells whether a policy of the role denies what the boundary denies if the parameter
    PermissionsBoundary is set."""
    wanted = [statement for statement in statements(boundary) if statement["Effect"] == "Deny"]
    return any(
        resource["Type"] == "AWS::IAM::Policy" and resource.get("Condition") == "HasBoundary" and statements(resource) == wanted
        and f"{{'Ref': '{role}'}}" in str(resource["Properties"]["Roles"])
        for resource in resources.values())


def statements(policy):
    return policy.get("Properties", {}).get("PolicyDocument", {}).get("Statement", [])


def keeps_interfaces(policy):
    """Tells whether a managed policy denies functions to change network interfaces. Lambda itself,
    which makes them, is no function."""
    return any(
        statement["Effect"] == "Deny" and set(statement["Action"]) >= INTERFACES and statement.get("Resource") == "*"
        and str(statement.get("Condition", {}).get("ArnLike", {}).get("lambda:SourceFunctionArn")).endswith(":function:*'}")
        for statement in statements(policy))


def denies(policy):
    """Tells whether a managed policy denies writing to all log groups but those of names that begin
    with the stack's prefix."""
    for statement in statements(policy):
        others = [str(resource) for resource in statement.get("NotResource", [])]
        if statement["Effect"] == "Deny" and set(statement["Action"]) >= WRITES and others and not any(o.endswith("log-group:*'}") for o in others):
            return True
    return False
