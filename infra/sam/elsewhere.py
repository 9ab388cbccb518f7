"""Lists calls of functions to services of AWS that no end-to-end test reaches (ECS, CodeBuild, ECR,
S3, logs and what releases need), about the resources that the adapters name, for the simulator of
IAM. Each action that a role allows of these services must be in the list. And it lists the
partitions of the table that functions which answer strangers must reach, and those that they must
not; and the functions whose traffic CodeDeploy shifts, and those of a stack whose name begins with
this one's. What a role may change without a name of this stack must be in a list, too.

Usage: elsewhere.py template.yaml
"""

import itertools
import json
import re
import sys

import policies
from transform import transform

REGION, ACCOUNT, STACK = policies.REGION, policies.ACCOUNT, policies.STACK
KEY = policies.ARNS["AWS::KMS::Key"]
LISTENER = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:listener/app/agents/1/2"
PARAMETERS = {"VpcId": "vpc", "Subnets": "a", "SecurityGroups": "a", "FunctionSubnets": "b", "FunctionSecurityGroups": "b", "AlbListenerArn": LISTENER, "AlbUrl": "http://alb"}
SERVICES = {"application-autoscaling", "cloudwatch", "codebuild", "ecr", "ecs", "elasticloadbalancing", "iam", "logs", "s3", "sts"}
# The simulator's data have two forms of the ARNs of these actions in one text, which no ARN
# matches.
UNKNOWN = {"elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags"}
IN_REGION = {"aws:RequestedRegion": REGION}
REVISION = "0197a000-0000-7000-8000-000000000001"


def arn(service, rest, region=REGION):
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{rest}"


def ours(name):
    """Returns the name that a resource of the template has in what policies.py prints."""
    return f"{STACK}-{name}"


CLUSTER = arn("ecs", f"cluster/{ours('Cluster')}")
SERVICE = arn("ecs", f"service/{ours('Cluster')}/{STACK}-{REVISION}")
GROUP = arn("elasticloadbalancing", f"targetgroup/{STACK}-abcdefghij/0123456789abcdef")
RULE = LISTENER.replace(":listener/", ":listener-rule/") + "/3"
IMAGES, PUSHED = arn("ecr", f"repository/{ours('Repository')}"), arn("ecr", f"repository/{ours('Repository')}/w/d")
SOURCE = f"arn:aws:s3:::{ours('Uploads')}/sources/w/d/1"
SCALED = {"application-autoscaling:service-namespace": "ecs"}
TARGET = arn("application-autoscaling", "scalable-target/0123456789abcdef")
ALARM = arn("cloudwatch", f"alarm:TargetTracking-service/{ours('Cluster')}/{STACK}-{REVISION}-AlarmHigh-1")
LINE = {"ecs:cluster": CLUSTER}
GROUPS = {name: arn("logs", f"log-group:{ours(name)}:log-stream:w/d/r/listener") for name in ("AgentLogGroup", "BuildLogGroup")}
ECS_ROLE, SCALING_ROLE = "ecs.amazonaws.com", "ecs.application-autoscaling.amazonaws.com"

READS = [
    ("codebuild:BatchGetBuilds codebuild:ListBuildsForProject codebuild:StopBuild", arn("codebuild", f"project/{ours('BuildProject')}"), {}),
    ("ecr:BatchDeleteImage", IMAGES, {}),
    ("ecr:BatchDeleteImage ecr:DescribeImages ecr:DeleteRepository", PUSHED, {}),
    ("s3:DeleteObject", SOURCE, {}),
    ("s3:ListBucket", f"arn:aws:s3:::{ours('Uploads')}", {}),
    ("ecs:DescribeServices ecs:DeleteService ecs:DescribeExpressGatewayService ecs:DeleteExpressGatewayService ecs:ListServiceDeployments", SERVICE, {}),
    ("ecs:DeleteTaskDefinitions", arn("ecs", f"task-definition/{STACK}-{REVISION}:1"), {}),
    ("ecs:DeregisterTaskDefinition ecs:ListTaskDefinitions", "*", IN_REGION),
    ("ecs:DescribeTasks", arn("ecs", f"task/{ours('Cluster')}/0123456789abcdef"), LINE),
    ("ecs:ListTasks", "*", LINE),
    ("elasticloadbalancing:DeleteTargetGroup", GROUP, {}),
    ("elasticloadbalancing:DeleteRule", RULE, {}),
    ("elasticloadbalancing:DescribeRules elasticloadbalancing:DescribeTags elasticloadbalancing:DescribeTargetGroups elasticloadbalancing:DescribeTargetHealth", "*", IN_REGION),
    ("application-autoscaling:DeregisterScalableTarget application-autoscaling:DeleteScalingPolicy", TARGET, SCALED),
    ("cloudwatch:DeleteAlarms", ALARM, {}),
]
WRITES = [
    ("s3:DeleteObjectTagging", SOURCE, {}),
    ("codebuild:StartBuild", arn("codebuild", f"project/{ours('BuildProject')}"), {}),
    ("ecs:RegisterTaskDefinition ecs:TagResource", arn("ecs", f"task-definition/{STACK}-{REVISION}:1"), {}),
    ("ecs:CreateService ecs:UpdateService ecs:CreateExpressGatewayService ecs:UpdateExpressGatewayService ecs:TagResource", SERVICE, LINE),
    ("ecs:DescribeTaskDefinition", "*", IN_REGION),
    ("elasticloadbalancing:CreateTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes", GROUP, {}),
    ("elasticloadbalancing:CreateRule", LISTENER, {}),
    ("application-autoscaling:RegisterScalableTarget application-autoscaling:PutScalingPolicy", TARGET, SCALED),
    ("cloudwatch:DescribeAlarms cloudwatch:PutMetricAlarm", ALARM, {}),
    ("iam:CreateServiceLinkedRole", arn("iam", f"role/aws-service-role/{ECS_ROLE}/AWSServiceRoleForECS", ""), {"iam:AWSServiceName": ECS_ROLE}),
    ("iam:CreateServiceLinkedRole", arn("iam", f"role/aws-service-role/{SCALING_ROLE}/AWSServiceRoleForApplicationAutoScaling_ECSService", ""), {"iam:AWSServiceName": SCALING_ROLE}),
    *(("iam:PassRole", arn("iam", f"role/{ours(role)}", ""), {"iam:PassedToService": "ecs-tasks.amazonaws.com"}) for role in ("AgentExecutionRole", "AgentTaskRole")),
]
FOLLOWS = [("logs:FilterLogEvents", group, {}) for group in GROUPS.values()]
SHIFTED = [arn("lambda", f"function:{ours(name)}-AbCdEfGhIjKl:live") for name in ("Authorizer", "Integrations", "Runs")]
EXPRESS = [("ecs:DescribeExpressGatewayService", SERVICE, {})]
CALLS = {
    "Deployments": FOLLOWS + [
        ("s3:PutObject s3:PutObjectTagging", SOURCE, {}), ("ecr:CreateRepository ecr:DescribeRepositories", PUSHED, {}), ("sts:AssumeRole", arn("iam", f"role/{ours('PushRole')}", ""), {})],
    "Listeners": [("logs:CreateLogStream logs:PutLogEvents", GROUPS["AgentLogGroup"], {})],
    "Runstream": FOLLOWS + EXPRESS, "ManagedRunstream": EXPRESS, "Runs": EXPRESS, "Threads": EXPRESS, "Assistants": EXPRESS, "Agentroutes": EXPRESS, "Runner": EXPRESS, "ManagedRunner": EXPRESS,
    "Rollout": READS + WRITES, "Reconcile": READS,
    "ShiftRole": [("lambda:GetAlias lambda:UpdateAlias", alias, {}) for alias in SHIFTED] + [("cloudwatch:DescribeAlarms", arn("cloudwatch", "alarm:*"), {})],
}

# The actions by which roles may change other stacks of the account and region: IAM knows no
# resource for it, the id of a scalable target names no stack, or the resource is one that stacks
# may share. infra/README.md (Names) says so, too.
REMOVED = "application-autoscaling:DeleteScalingPolicy application-autoscaling:DeregisterScalableTarget ecs:DeregisterTaskDefinition elasticloadbalancing:DeleteRule"
DELIVERED = "logs:CreateLogDelivery logs:DeleteLogDelivery logs:PutResourcePolicy logs:UpdateLogDelivery"
SHARED = {
    "Reconcile": REMOVED,
    "Rollout": REMOVED + " application-autoscaling:PutScalingPolicy application-autoscaling:RegisterScalableTarget elasticloadbalancing:AddTags"
    " elasticloadbalancing:CreateRule iam:CreateServiceLinkedRole",
    **{f"{machine}MachineRole": DELIVERED for machine in ("Restart", "Rollout", "Run", "Teardown", "Webhook")},
}
READING = re.compile(r"\w+:(BatchGet|Describe|Get|List)")

# Partitions as internal/record/keys names them, with the actions that are possible with them.
TABLE, LIST = arn("dynamodb", f"table/{STACK}"), arn("dynamodb", f"table/{STACK}/index/list")
ALL = "GetItem BatchGetItem Query ConditionCheckItem PutItem UpdateItem DeleteItem BatchWriteItem"
OPEN = ("Githubhook", "Integrations", "Authservice")
REACHED = [
    (ALL, TABLE, "W#0 W#0#D#0 W#0#AUDIT W#0#AUTH-USER#ann W#0#GIT-CREDENTIALS W#0#INSTALLATION#7 W#0#D#0#BODY#0#0 INSTALLATIONS#7 BODY-CLAIMS#A"),
    ("Query", LIST, "W#0#PUSHES#0 W#0#AUTH-TOKEN#0 INSTALLATIONS#7"), ("Query", TABLE, "DATA-KEYS")]
UNREACHED = [
    (ALL, TABLE, "KEY#0 SESSION#0 SIGN-IN#0 WORKSPACE-NAMES BUILD#0 W#0#MEMBERS W#0#TRUST-RULES W#0#API-KEYS"),
    ("PutItem UpdateItem DeleteItem BatchWriteItem", TABLE, "DATA-KEYS"), ("Query", arn("dynamodb", f"table/{STACK}/index/due"), "RELEASES W#0")]


def partitions(functions, rows):
    """Yields a call for each function, action and partition."""
    for actions, resource, names in rows:
        for function, action, name in itertools.product(functions, actions.split(), names.split()):
            yield {"function": function, "action": f"dynamodb:{action}", "resource": resource, "context": {"dynamodb:LeadingKeys": name}}


def unlisted(roles):
    """Returns a sentence for each action of these services that a role allows and that is not in
    the list."""
    for function, role in roles.items():
        listed = {action for actions, _, _ in CALLS.get(function, []) for action in actions.split()}
        allowed = {action for document in role["policies"] for statement in document["Statement"] for action in statement["Action"]}
        yield from (f"{function}: say in CALLS what {action} is called for" for action in sorted(allowed - listed - UNKNOWN) if action.split(":")[0] in SERVICES)


def shared(roles):
    """Returns a sentence for each action by which a role may change what need not be of this stack
    and that SHARED lacks, and for each that it has in vain."""
    for name in sorted(roles.keys() | SHARED.keys()):
        allowed = set()
        for document in roles.get(name, {"policies": []})["policies"]:
            for statement in (s for s in document["Statement"] if s.get("Effect") != "Deny"):
                resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
                if not all(STACK in resource or resource == KEY for resource in resources):
                    allowed.update(action for action in statement["Action"] if not READING.match(action))
        listed = set(SHARED.get(name, "").split())
        yield from (f"{name} may {action} with what is not of this stack: name a resource of the stack, or say so in SHARED and infra/README.md" for action in sorted(allowed - listed))
        yield from (f"{name} may not {action} with what is not of this stack: SHARED is out of date" for action in sorted(listed - allowed))


def main(path):
    translated = transform(path)
    asked = policies.policies(translated, PARAMETERS, ["ShiftRole"])
    resources = translated["Resources"]
    of_functions = {r["Properties"]["Role"]["Fn::GetAtt"][0] for r in resources.values() if r["Type"] == "AWS::Lambda::Function"}
    others = [name for name, r in resources.items() if r["Type"] == "AWS::IAM::Role" and name not in of_functions]
    calls = [
        {"function": function, "action": action, "resource": resource, "context": context}
        for function, lines in CALLS.items() for actions, resource, context in lines for action in actions.split()]
    problems = [*unlisted(asked["roles"]), *shared(policies.policies(translated, PARAMETERS, others)["roles"])]
    for problem in problems:
        print(problem, file=sys.stderr)
    another = [{**call, "resource": call["resource"].replace(f"{STACK}-", "another-")} for call in calls if f"{STACK}-" in call["resource"]]
    siblings = [{**call, "resource": call["resource"].replace(f"{STACK}-", f"{STACK}-dev-")} for call in calls if call["resource"] in SHIFTED]
    calls += partitions(OPEN, REACHED)
    print(json.dumps({"policies": asked, "calls": calls, "forbidden": another + siblings + list(partitions(OPEN, UNREACHED))}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
