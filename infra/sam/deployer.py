"""Compares deployer.yaml with what CloudFormation asks of AWS in the name of whoever deploys the
translated template, and prints the calls and the policies for the simulator of IAM
(internal/test/emulator/iam/asked.mjs). Nothing is sent anywhere.

Usage: deployer.py template.yaml infra/deployer.yaml
"""

import json
import sys

import policies
import quotas
from samcli.yamlhelper import yaml_parse
from transform import transform

REGION, ACCOUNT, STACK, PREFIX, ZONE = "us-east-1", "000000000000", "the-stack", "slipway", "THEZONE"  # the prefix is the template's default
# The worst name that the role's own stack may have: the role's patterns for the deployed stack
# match it.
OWN_STACK = f"{STACK}-deployer"
NETWORK = {
    "VpcId": "vpc", "Subnets": "subnet-a", "SecurityGroups": "sg", "FunctionSubnets": "subnet-b", "FunctionSecurityGroups": "sg-functions",
    "AlbListenerArn": "arn:aws:elasticloadbalancing:us-east-1:000000000000:listener/app/a/b/c", "AlbUrl": "http://alb",
}
# The parameters of a person with an account: everything that a condition of the template can add.
PARAMETERS = {
    **NETWORK, "NamePrefix": PREFIX, "DomainName": "api.test", "CertificateArn": "certificate", "HostedZoneId": ZONE, "RunnerConcurrency": "5", "ComputeKind": "express",
    "AlarmTopic": "arn:aws:sns:us-east-1:000000000000:topic", "MonthlyBudget": "100", "TrafficShift": "Canary10Percent15Minutes", "ProvisionedConcurrency": "1",
    "PermissionsBoundary": "arn:aws:iam::000000000000:policy/organization", "RunnerCompute": "managed", "CdnNetworks": "192.0.2.0/24", "ClientAddressHeader": "CF-Connecting-IP",
}
TAGGED = {"aws:ResourceTag/aws:cloudformation:stack-name": STACK}
IN_REGION = {"aws:RequestedRegion": REGION}

# The calls of CloudFormation that create, read, change, tag and delete a resource of each type,
# with the properties that the template gives it: the permissions of the handlers in the types'
# registered schemas, without those for properties that the template does not use. The services of
# types without a published list (alarms, rules, policies, projects, clusters, web ACLs,
# permissions) have them in their API references.
# An action stands for a call about the resource itself, or, with "*", for one that IAM knows no
# resource for.
ACTIONS = {
    "AWS::Budgets::Budget": "ModifyBudget ViewBudget",
    "AWS::CloudWatch::Alarm": "PutMetricAlarm DescribeAlarms DeleteAlarms ListTagsForResource TagResource UntagResource",
    "AWS::CloudWatch::Dashboard": "PutDashboard GetDashboard DeleteDashboards",
    "AWS::CodeBuild::Project": "CreateProject UpdateProject DeleteProject BatchGetProjects",
    "AWS::CodeDeploy::Application": "CreateApplication GetApplication DeleteApplication ListTagsForResource TagResource UntagResource",
    "AWS::CodeDeploy::DeploymentGroup": "CreateDeploymentGroup GetDeploymentGroup UpdateDeploymentGroup DeleteDeploymentGroup ListTagsForResource TagResource UntagResource "
    "ListDeployments CreateDeployment GetDeployment StopDeployment* GetDeploymentConfig GetApplicationRevision RegisterApplicationRevision",
    "AWS::DynamoDB::Table": "CreateTable DescribeTable UpdateTable DeleteTable DescribeTimeToLive UpdateTimeToLive DescribeContinuousBackups UpdateContinuousBackups "
    "DescribeContributorInsights DescribeKinesisStreamingDestination ListTagsOfResource TagResource UntagResource",
    "AWS::ECR::Repository": "CreateRepository DescribeRepositories DeleteRepository GetLifecyclePolicy PutLifecyclePolicy GetRepositoryPolicy PutImageScanningConfiguration "
    "PutImageTagMutability ListTagsForResource TagResource UntagResource ListImages BatchDeleteImage",
    "AWS::ECS::Cluster": "CreateCluster* DescribeClusters UpdateCluster UpdateClusterSettings DeleteCluster TagResource UntagResource",
    "AWS::ECS::ClusterCapacityProviderAssociations": "PutClusterCapacityProviders DescribeClusters",
    "AWS::Events::Rule": "PutRule DescribeRule DeleteRule PutTargets RemoveTargets TagResource UntagResource",
    "AWS::IAM::ManagedPolicy": "CreatePolicy GetPolicy GetPolicyVersion CreatePolicyVersion ListPolicyVersions DeletePolicyVersion DeletePolicy",
    "AWS::IAM::Policy": "PutRolePolicy GetRolePolicy DeleteRolePolicy",
    "AWS::IAM::Role": "CreateRole GetRole UpdateRole UpdateRoleDescription UpdateAssumeRolePolicy DeleteRole PutRolePolicy GetRolePolicy DeleteRolePolicy ListRolePolicies "
    "ListAttachedRolePolicies PutRolePermissionsBoundary DeleteRolePermissionsBoundary TagRole UntagRole",
    "AWS::KMS::Alias": "CreateAlias UpdateAlias DeleteAlias ListAliases*",
    "AWS::KMS::Key": "CreateKey* DescribeKey GetKeyPolicy PutKeyPolicy GetKeyRotationStatus EnableKeyRotation ListResourceTags TagResource UntagResource UpdateKeyDescription "
    "ScheduleKeyDeletion CreateAlias UpdateAlias DeleteAlias CreateGrant Decrypt",  # the last two are the table's, which it encrypts
    "AWS::Lambda::Alias": "CreateAlias GetAlias UpdateAlias DeleteAlias",
    "AWS::Lambda::CapacityProvider": "CreateCapacityProvider GetCapacityProvider UpdateCapacityProvider DeleteCapacityProvider PassCapacityProvider ListTags TagResource "
    "UntagResource",
    "AWS::Lambda::EventInvokeConfig": "PutFunctionEventInvokeConfig GetFunctionEventInvokeConfig UpdateFunctionEventInvokeConfig DeleteFunctionEventInvokeConfig",
    "AWS::Lambda::Function": "CreateFunction GetFunction GetFunctionConfiguration GetFunctionCodeSigningConfig GetRuntimeManagementConfig UpdateFunctionCode "
    "UpdateFunctionConfiguration PutFunctionConcurrency DeleteFunctionConcurrency PutFunctionScalingConfig GetFunctionScalingConfig DeleteFunction ListTags TagResource "
    "UntagResource",
    "AWS::Lambda::LayerVersion": "PublishLayerVersion GetLayerVersion",
    "AWS::Lambda::Permission": "AddPermission RemovePermission GetPolicy",
    "AWS::Lambda::Version": "PublishVersion GetFunctionConfiguration ListVersionsByFunction DeleteFunction",
    "AWS::Logs::LogGroup": "CreateLogGroup DescribeLogGroups* PutRetentionPolicy DeleteLogGroup ListTagsForResource TagResource UntagResource",
    "AWS::Logs::MetricFilter": "PutMetricFilter DescribeMetricFilters DeleteMetricFilter",
    "AWS::Route53::RecordSetGroup": "ChangeResourceRecordSets GetHostedZone GetChange",
    "AWS::S3::Bucket": "CreateBucket ListBucket DeleteBucket GetEncryptionConfiguration PutEncryptionConfiguration GetBucketOwnershipControls PutBucketOwnershipControls "
    "GetBucketPublicAccessBlock PutBucketPublicAccessBlock GetLifecycleConfiguration PutLifecycleConfiguration GetBucketTagging PutBucketTagging",
    "AWS::S3::BucketPolicy": "GetBucketPolicy PutBucketPolicy DeleteBucketPolicy",
    "AWS::SQS::Queue": "CreateQueue GetQueueUrl GetQueueAttributes SetQueueAttributes DeleteQueue ListQueueTags TagQueue UntagQueue",
    "AWS::SQS::QueuePolicy": "SetQueueAttributes",
    "AWS::StepFunctions::StateMachine": "CreateStateMachine DescribeStateMachine UpdateStateMachine DeleteStateMachine ListTagsForResource TagResource UntagResource",
    "AWS::WAFv2::IPSet": "CreateIPSet GetIPSet UpdateIPSet DeleteIPSet ListTagsForResource TagResource UntagResource",
    "AWS::WAFv2::WebACL": "CreateWebACL GetWebACL UpdateWebACL DeleteWebACL ListTagsForResource TagResource UntagResource",
    "AWS::WAFv2::WebACLAssociation": "AssociateWebACL GetWebACLForResource",
}
SERVICES = {"StepFunctions": "states"}  # others are called as in the names of types

# How the ARN of a resource of each type goes on after its service, region and account; NAME is its
# own name.
PLACES = {
    "AWS::CloudWatch::Alarm": "alarm:NAME", "AWS::CodeBuild::Project": "project/NAME", "AWS::CodeDeploy::Application": "application:NAME", "AWS::DynamoDB::Table": "table/NAME", "AWS::ECR::Repository": "repository/NAME",
    "AWS::ECS::Cluster": "cluster/NAME", "AWS::Events::Rule": "rule/NAME", "AWS::IAM::ManagedPolicy": "policy/NAME", "AWS::IAM::Role": "role/NAME",
    "AWS::KMS::Alias": "NAME", "AWS::KMS::Key": "key/NAME", "AWS::Lambda::CapacityProvider": "capacity-provider:NAME", "AWS::Lambda::Function": "function:NAME", "AWS::Lambda::LayerVersion": "layer:NAME",
    "AWS::Logs::LogGroup": "log-group:NAME", "AWS::SQS::Queue": "NAME", "AWS::StepFunctions::StateMachine": "stateMachine:NAME", "AWS::WAFv2::IPSet": "regional/ipset/NAME/id", "AWS::WAFv2::WebACL": "regional/webacl/NAME/id",
}
NAMES = ("RepositoryName", "ClusterName", "LogGroupName", "StateMachineName", "LayerName", "AliasName", "Name")
# Resources that belong to another: whose ARN their calls are about.
OWNERS = {
    "AWS::ECS::ClusterCapacityProviderAssociations": "Cluster",
    "AWS::Lambda::Alias": "FunctionName", "AWS::Lambda::EventInvokeConfig": "FunctionName", "AWS::Lambda::Permission": "FunctionName", "AWS::Lambda::Version": "FunctionName",
    "AWS::Logs::MetricFilter": "LogGroupName", "AWS::S3::BucketPolicy": "Bucket", "AWS::SQS::QueuePolicy": "Queues",
}
# API Gateway's actions are methods of its own interface.
API = {
    "AWS::ApiGateway::Account": {"/account": "GET PATCH"},
    "AWS::ApiGateway::BasePathMapping": {"/domainnames/api.test/basepathmappings": "POST", "/domainnames/api.test/basepathmappings/v": "GET PATCH DELETE"},
    "AWS::ApiGateway::DomainName": {"/domainnames": "POST", "/domainnames/api.test": "GET PATCH DELETE"},
    "AWS::ApiGateway::RestApi": {"/restapis": "POST", "/restapis/id": "GET PUT PATCH DELETE", "/tags/id": "GET PUT DELETE"},
    # The simulator's data has two forms of their ARNs in one text, which no ARN matches. They are
    # below those of the API.
    "AWS::ApiGateway::Deployment": {},
    "AWS::ApiGateway::Stage": {},
}
# Actions that are needed, and that the simulator cannot be asked about, for the same reason.
UNKNOWN = {
    "apigateway:SetWebACL", "lambda:PutProvisionedConcurrencyConfig", "lambda:GetProvisionedConcurrencyConfig", "lambda:DeleteProvisionedConcurrencyConfig",
}


# The role that a service makes in the account, in the caller's name, for a type's first resource.
LINKED = {
    "AWS::ApiGateway::DomainName": "ops.apigateway.amazonaws.com/AWSServiceRoleForAPIGateway",
    "AWS::ECS::Cluster": "ecs.amazonaws.com/AWSServiceRoleForECS",
    "AWS::KMS::Key": "mrk.kms.amazonaws.com/AWSServiceRoleForKeyManagementServiceMultiRegionKeys",  # if it is a multi-Region key
    "AWS::Lambda::CapacityProvider": "lambda.amazonaws.com/AWSServiceRoleForLambda",
}


class Deployment:
    """One deployment of a translated template, as calls to AWS."""

    def __init__(self, translated):
        self.translated = translated
        self.resources = {
            name: resource for name, resource in translated["Resources"].items()
            if "Condition" not in resource or policies.holds({"Condition": resource["Condition"]}, translated, self.names(translated))}
        self.text = lambda value: quotas.resolve(policies.decide(value, translated, self.names(translated)), self.names(translated))

    def names(self, translated):
        return {**policies.names_of(translated, PARAMETERS), "AWS::StackName": STACK, "of": lambda logical: f"{STACK}-{logical}-x"}

    def name(self, logical):
        properties = self.resources[logical]["Properties"]
        own = next((self.text(properties[member]) for member in NAMES if member in properties), f"{STACK}-{logical}-x")
        return own.lower() if self.resources[logical]["Type"] == "AWS::S3::Bucket" else own

    def arn(self, logical):
        kind = self.resources[logical]["Type"]
        if kind == "AWS::S3::Bucket":
            return f"arn:aws:s3:::{self.name(logical)}"
        if kind == "AWS::CloudWatch::Dashboard":
            return f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/{PREFIX}-{REGION}"
        if kind == "AWS::Budgets::Budget":
            return f"arn:aws:budgets::{ACCOUNT}:budget/{self.text(self.resources[logical]['Properties']['Budget']['BudgetName'])}"
        if kind == "AWS::Lambda::Alias":
            return self.arn(self.resources[logical]["Properties"]["FunctionName"]["Ref"])
        region = "" if "::IAM::" in kind else REGION
        return f"arn:aws:{service(kind)}:{region}:{ACCOUNT}:{PLACES[kind].replace('NAME', self.name(logical))}"

    def calls(self):
        for logical, resource in self.resources.items():
            yield from self.of_resource(logical, resource["Type"], resource["Properties"])
        for resource in self.resources.values():
            if resource["Type"] == "AWS::ApiGateway::Stage":
                yield from (call(f"logs:{action}", "*", IN_REGION) for action in DELIVERY)
        yield from SAM

    def of_resource(self, logical, kind, properties):
        if kind == "AWS::IAM::Role":
            yield from self.of_role(logical, properties)
        if kind in LINKED:
            yield call("iam:CreateServiceLinkedRole", f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{LINKED[kind]}", {"iam:AWSServiceName": LINKED[kind].split("/")[0]})
        if kind in API:
            for path, methods in API[kind].items():
                yield from (call(f"apigateway:{method}", f"arn:aws:apigateway:{REGION}::{path}") for method in methods.split())
            return
        if kind not in ACTIONS:
            sys.exit(f"{logical}: say in ACTIONS what CloudFormation calls for a resource of the type {kind}")
        if kind == "AWS::KMS::Key":
            yield call("kms:TagResource", self.arn(logical), self.tags_of_key("Request"))  # asked by CreateKey
        for action in ACTIONS[kind].split():
            named = f"{service(kind)}:{action.rstrip('*')}"
            if action == "CreateKey*":
                yield call(named, "*", self.tags_of_key("Request"))
            elif action.endswith("*"):
                yield call(named, "*", IN_REGION)
            else:
                yield from (call(named, arn, self.tags(kind)) for arn in self.about(logical, kind, properties, action))

    def tags(self, kind):
        """Returns a resource's tags. CloudFormation puts its own on all types but those of KMS."""
        if kind == "AWS::KMS::Key":
            return self.tags_of_key("Resource")
        return TAGGED if service(kind) != "kms" else {}

    def tags_of_key(self, of):
        """Returns the tags that the template gives its key. A stack may have no tags."""
        return {f"aws:{of}Tag/{tag['Key']}": self.text(tag["Value"]) for tag in self.resources["Key"]["Properties"].get("Tags", [])}

    def about(self, logical, kind, properties, action):
        """Returns the ARNs that a call about a resource names."""
        if kind == "AWS::Route53::RecordSetGroup":
            return ["arn:aws:route53:::change/id" if action == "GetChange" else f"arn:aws:route53:::hostedzone/{ZONE}"]
        if kind == "AWS::WAFv2::WebACLAssociation":
            return [self.arn("WebAcl")]
        if kind == "AWS::CodeDeploy::DeploymentGroup":
            return [self.about_group(logical, properties, action)]
        if kind == "AWS::IAM::Policy":
            return [self.arn(role["Ref"]) for role in policies.decide(properties["Roles"], self.translated, self.names(self.translated)) if role["Ref"] in self.resources]
        if kind in OWNERS:
            owner = json.dumps(properties[OWNERS[kind]])
            return [self.arn(next(name for name in self.resources if f'"{name}"' in owner))]
        if action == "GetLayerVersion":
            return [self.arn(logical) + ":1"]
        return [self.arn(logical)]

    def about_group(self, logical, properties, action):
        """Returns the ARN of a deployment group, of its configuration, which is AWS's, or of its
        application."""
        application = properties["ApplicationName"]["Ref"]
        if action == "GetDeploymentConfig":
            return f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentconfig:{self.text(properties['DeploymentConfigName'])}"
        if action.endswith("ApplicationRevision"):
            return self.arn(application)
        return f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentgroup:{self.name(application)}/{self.name(logical)}"

    def of_role(self, logical, properties):
        """Yields what attaches policies to a role, and what hands it to the services that may
        assume it."""
        for policy in properties.get("ManagedPolicyArns", []):
            attached = self.arn(policy["Ref"]) if isinstance(policy, dict) and policy.get("Ref") in self.resources else self.text(policy)
            for action in ("iam:AttachRolePolicy", "iam:DetachRolePolicy"):
                yield call(action, self.arn(logical), {"iam:PolicyARN": attached})
        for statement in properties["AssumeRolePolicyDocument"]["Statement"]:
            services = statement["Principal"].get("Service", [])
            for passed in [services] if isinstance(services, str) else services:
                if passed not in TASKS:
                    yield call("iam:PassRole", self.arn(logical), {"iam:PassedToService": passed})


# Roles that functions of the stack hand on, not whoever deploys it.
TASKS = {"ecs-tasks.amazonaws.com", "ecs.amazonaws.com"}
DELIVERY = ["CreateLogDelivery", "GetLogDelivery", "UpdateLogDelivery", "DeleteLogDelivery", "ListLogDeliveries", "PutResourcePolicy", "DescribeResourcePolicies"]


def service(kind):
    namespace = kind.split("::")[1]
    return SERVICES.get(namespace, namespace.lower())


def call(action, resource, context=None):
    return {"function": "Deployer", "action": action, "resource": resource, "context": {**IN_REGION, **(context or {})}}


def stacks(*names):
    return [f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{name}/id" for name in names]


BUCKET = "arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-x"
# The calls of `sam deploy`, `sam list` and `sam delete` themselves. Lambda looks up the functions'
# subnets in the caller's name.
SAM = [
    *(call(f"cloudformation:{action}", stack) for stack in stacks(STACK, "aws-sam-cli-managed-default") for action in (
        "CreateChangeSet", "DescribeChangeSet", "ExecuteChangeSet", "DeleteChangeSet", "DescribeStacks", "DescribeStackEvents", "GetTemplate", "ListStackResources", "DeleteStack")),
    *(call("cloudformation:DescribeStacks", stack) for stack in stacks(f"{STACK}-network")),
    call("cloudformation:GetTemplateSummary", "*", IN_REGION),
    *(call(f"s3:{action}", BUCKET) for action in (
        "CreateBucket", "ListBucket", "GetBucketLocation", "GetBucketPolicy", "PutBucketPolicy", "PutBucketPublicAccessBlock", "PutBucketTagging", "PutBucketVersioning",
        "GetEncryptionConfiguration", "PutEncryptionConfiguration")),
    *(call(f"s3:{action}", f"{BUCKET}/{STACK}/object") for action in ("PutObject", "GetObject", "GetObjectVersion")),
    *(call(f"ec2:{action}", "*", IN_REGION) for action in ("DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcs")),
    *(call(f"wafv2:{action}", f"arn:aws:apigateway:{REGION}::/restapis/id/stages/v") for action in ("AssociateWebACL", "DisassociateWebACL")),
    call("wafv2:CreateWebACL", f"arn:aws:wafv2:{REGION}:{ACCOUNT}:regional/managedruleset/AWS/id"),
    *(call(f"wafv2:{action}", f"arn:aws:wafv2:{REGION}:{ACCOUNT}:regional/ipset/{STACK}-CdnAddresses-x/id") for action in ("CreateWebACL", "UpdateWebACL")),
]

# The key of another stack, whose policy lets policies of the account decide too.
ANOTHER_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/another"
# The actions that the role must not be able to do.
FORBIDDEN = [
    call("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:another-function"),
    call("lambda:UpdateAlias", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:another-function:live"),
    call("codedeploy:CreateDeployment", f"arn:aws:codedeploy:{REGION}:{ACCOUNT}:deploymentgroup:another-application/{STACK}-group"),
    call("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}-Runner-x"),
    call("dynamodb:GetItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{STACK}-Table-x"),
    call("dynamodb:DeleteTable", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/another"),
    call("kms:CreateKey", "*"),
    call("kms:CreateKey", "*", {"aws:RequestTag/slipway:stack": "another"}),
    call("kms:ScheduleKeyDeletion", ANOTHER_KEY),
    call("kms:ScheduleKeyDeletion", ANOTHER_KEY, {"aws:ResourceTag/slipway:stack": "another"}),
    call("kms:TagResource", ANOTHER_KEY, {"aws:ResourceTag/slipway:stack": "another", "aws:RequestTag/slipway:stack": PREFIX}),
    call("iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/another"),
    call("iam:CreateServiceLinkedRole", f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot", {"iam:AWSServiceName": "spot.amazonaws.com"}),
    call("iam:AttachRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/{STACK}-x", {"iam:PolicyARN": "arn:aws:iam::aws:policy/AdministratorAccess"}),
    call("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{STACK}-x", {"iam:PassedToService": "ec2.amazonaws.com"}),
    *(call(f"iam:{action}", f"arn:aws:iam::{ACCOUNT}:role/{OWN_STACK}-Deployer-x") for action in ("PutRolePolicy", "UpdateAssumeRolePolicy")),
    call("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/{OWN_STACK}-Stacks-x"),
    call("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/somebody"),
    call("cloudformation:DeleteStack", stacks("another")[0]),
    call("logs:DeleteLogGroup", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/{PREFIX}x-runner"),
    call("s3:GetObject", f"arn:aws:s3:::{STACK}-uploads-x/sources/object"),
]


def deployer(path):
    """Returns the policies of the role."""
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    names = {
        "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::StackName": OWN_STACK, "NamePrefix": PREFIX, "Stack": STACK, "HostedZoneId": ZONE,
        "of": lambda logical: logical, "arn": lambda logical: logical}
    resources = template["Resources"]
    attached = resources["Deployer"]["Properties"]["ManagedPolicyArns"]
    return [quotas.resolve(resources[policy["Ref"]]["Properties"]["PolicyDocument"], names) for policy in attached]


def unneeded(documents, calls):
    """Returns a sentence for each action that a policy allows and no call needs, and for each
    policy that is too long."""
    allowed = {action for document in documents for statement in document["Statement"] if statement["Effect"] == "Allow" for action in statement["Action"]}
    problems = [f"nothing needs {action}" for action in sorted(allowed - UNKNOWN - {c["action"] for c in calls})]
    # IAM counts a policy without its white space.
    return problems + [f"policy {n} has {quotas.size(d)} bytes, more than 80 % of 6144" for n, d in enumerate(documents) if quotas.size(d) > quotas.SHARE * 6144]


def main(template, role):
    deployment, documents = Deployment(transform(template, PARAMETERS)), deployer(role)
    calls = list(deployment.calls())
    problems = unneeded(documents, calls)
    for problem in problems:
        print(problem, file=sys.stderr)
    decides = deployment.text(deployment.resources["Key"]["Properties"]["KeyPolicy"])
    keys = {deployment.arn("Key"): decides, ANOTHER_KEY: decides}
    asked = {"roles": {"Deployer": {"policies": documents, "boundary": policies.EVERYTHING}}, "resources": keys}
    print(json.dumps({"policies": asked, "calls": calls, "forbidden": FORBIDDEN}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
