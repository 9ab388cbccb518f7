package archtest_test

import (
	"path"
	"regexp"
	"slices"
	"testing"
)

// grants returns the permissions of each function, machine by machine for Step Functions.
func grants(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"Authorizer": {
			"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "kms:Decrypt",
		},
		"Deployments": slices.Concat(tableActions, makeKey, readLogs, []string{"states:StartExecution rollout", "states:StartExecution restart", "states:StartExecution teardown", "states:StartExecution webhook", "states:StopExecution teardown"}, pushImages, grantUploads),
		"Listeners":   slices.Concat(tableActions, useKey, appendLogs, []string{"states:StartExecution webhook"}),
		"Authservice": slices.Concat(tableActions, useKey),
		// The operator's secrets of the GitHub App: its key for one function, the secret of its
		// webhook for another function.
		"Integrations": slices.Concat(tableActions, useKey, readSecret),
		"Githubhook":   slices.Concat(tableActions, useKey, readSecret, []string{"states:StartExecution rollout", "states:StartExecution webhook"}),
		"Workspaces":   slices.Concat(tableActions, makeKey),
		"Threads":      slices.Concat(tableActions, useKey, []string{"ecs:DescribeExpressGatewayService", "states:StartExecution webhook"}),
		"Runs":         slices.Concat(tableActions, useKey, endRuns, []string{"ecs:DescribeExpressGatewayService"}),
		"Runstream":    slices.Concat(tableActions, useKey, readLogs, endRuns, []string{"ecs:DescribeExpressGatewayService"}),
		"Assistants":   slices.Concat(tableActions, useKey, []string{"ecs:DescribeExpressGatewayService"}),
		"Agentroutes":  slices.Concat(tableActions, useKey, endRuns, []string{"ecs:DescribeExpressGatewayService"}),
		"Webhook":      slices.Concat(tableActions, useKey),
		"Runner":       slices.Concat(tableActions, useKey, endRuns, []string{"ecs:DescribeExpressGatewayService"}),
		"Rollout": slices.Concat(tableActions, makeKey, readSecret,
			called(t, "compute/ecs", map[string]string{"ecs": "ecs", "elb": "elasticloadbalancing", "scaling": "application-autoscaling", "secrets": "secretsmanager"}),
			called(t, "build/codebuild", map[string]string{"builds": "codebuild", "images": "ecr", "secrets": "secretsmanager"}),
			removeImages, keepUploads, removeUploads, scalingAlarms, []string{
				// Requests need these actions, and no request has their names.
				"ecs:TagResource", "iam:PassRole", "secretsmanager:TagResource",
				"states:StartExecution rollout", "states:StartExecution webhook", "states:StopExecution rollout", "iam:CreateServiceLinkedRole",
			}),
		"Reconcile": slices.Concat(tableActions, useKey, removal, removeUploads, looking, []string{
			"states:StartExecution rollout", "states:StartExecution teardown", "states:StartExecution run", "states:StopExecution rollout",
			"states:DescribeExecution rollout", "states:DescribeExecution teardown", "states:DescribeExecution run",
			"states:StartExecution webhook", "states:DescribeExecution webhook", "states:StopExecution run",
		}),
	}
}

var (
	useKey = []string{"kms:Decrypt"}
	// makeKey is for functions that may need the data key before any other function has made it.
	makeKey = []string{"kms:GenerateDataKey", "kms:Decrypt"}
	// endRuns is for functions that start runs and end them; the end may be reported to a
	// webhook.
	endRuns    = []string{"states:StartExecution run", "states:StopExecution run", "states:StartExecution webhook"}
	readSecret = []string{"secretsmanager:GetSecretValue"}
	// scalingAlarms are the actions that Application Auto Scaling does in its caller's name.
	scalingAlarms = []string{"cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"}
	// looking is the part of the actions of package ecs that only Await needs.
	looking = []string{"ecs:DescribeTasks", "ecs:ListServiceDeployments", "ecs:ListTasks", "elasticloadbalancing:DescribeTargetHealth"}
	// removal is the part of the actions of packages ecs and codebuild that reads and removes,
	// except the reads that only Await needs.
	removal = []string{
		"application-autoscaling:DeleteScalingPolicy", "application-autoscaling:DeregisterScalableTarget", "cloudwatch:DeleteAlarms",
		"codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StopBuild", "ecr:BatchDeleteImage", "ecr:DeleteRepository", "ecr:DescribeImages",
		"ecs:DeleteExpressGatewayService", "ecs:DeleteService", "ecs:DeleteTaskDefinitions", "ecs:DeregisterTaskDefinition",
		"ecs:DescribeExpressGatewayService", "ecs:DescribeServices", "ecs:ListTaskDefinitions", "elasticloadbalancing:AddTags",
		"elasticloadbalancing:DeleteRule", "elasticloadbalancing:DeleteTargetGroup", "elasticloadbalancing:DescribeRules",
		"elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroups", "secretsmanager:DeleteSecret",
	}
)

// unscoped are the actions for which IAM knows no resource, so that only "*" is possible.
var unscoped = []string{
	"ecr:GetAuthorizationToken", "ecs:DeregisterTaskDefinition", "ecs:DescribeTaskDefinition", "ecs:ListTaskDefinitions", "ecs:ListTasks",
	"elasticloadbalancing:DescribeRules", "elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroups",
	"elasticloadbalancing:DescribeTargetHealth", "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups",
	"logs:DescribeResourcePolicies", "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
}

// The actions of the other packages that call AWS.
var (
	// There is no Scan.
	tableActions = []string{
		"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem",
		"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem",
	}
	readLogs = []string{"logs:FilterLogEvents"}
	// appendLogs: the first on the group of the agents, the second on those of its streams whose
	// name ends with "/listener".
	appendLogs   = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
	pushImages   = []string{"ecr:CreateRepository", "ecr:DescribeRepositories", "sts:AssumeRole"}
	removeImages = []string{"ecr:BatchDeleteImage", "ecr:DeleteRepository", "ecr:DescribeImages"}
	// grantUploads: an address can do what its signer may do.
	grantUploads  = []string{"s3:PutObject", "s3:PutObjectTagging"}
	keepUploads   = []string{"s3:ListBucket", "s3:DeleteObjectTagging"}
	removeUploads = []string{"s3:DeleteObject", "s3:ListBucket"}
	// buildActions are the actions of the script of a build: pushing to the repository, for which
	// the user guide of ECR lists the actions, reading the secrets whose names begin with the
	// prefix and "-build-", and reading the layer with the tools and the bucket of uploads, which
	// it may not list.
	buildActions = []string{
		"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:CompleteLayerUpload", "ecr:GetAuthorizationToken", "ecr:InitiateLayerUpload", "ecr:PutImage", "ecr:UploadLayerPart",
		"lambda:GetLayerVersion", "s3:GetObject", "secretsmanager:GetSecretValue",
	}
)

// called returns the actions of the requests that an adapter's own source sends through clients.
// clients holds the service of each client.
func called(t *testing.T, folder string, clients map[string]string) []string {
	t.Helper()
	request, paginator := regexp.MustCompile(`\.(\w+)\.([A-Z]\w+)\(ctx`), regexp.MustCompile(`\.New(\w+)Paginator\(\w+\.(\w+),`)
	var actions []string
	for _, f := range files(t) {
		if path.Dir(f.name) != "internal/seam/"+folder || f.isTest() {
			continue
		}
		calls := request.FindAllStringSubmatch(f.text, -1)
		for _, pages := range paginator.FindAllStringSubmatch(f.text, -1) {
			calls = append(calls, []string{"", pages[2], pages[1]})
		}
		for _, call := range calls {
			if service, ok := clients[call[1]]; ok {
				actions = append(actions, service+":"+call[2])
			}
		}
	}
	return actions
}
