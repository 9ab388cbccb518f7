// Package ecs is the compute target of an AWS account: a release is one Fargate service of its own.
//
// Behind the stack's load balancer (Fargate) it consists of a task definition, a secret, a target
// group, a listener rule that forwards requests with the header X-Slipway-Revision to it, the
// service, and a scaling target if it may scale. With ECS Express Mode the service brings its own
// address, rules and scaling, and costs a load balancer per 25 releases; the rest is the same.
//
// All names are derived from the revision's id (names.go) and every step asks first what is there,
// so Apply and Remove may be cut off anywhere and repeated. The service is made last and deleted
// before what it needs. Nothing is stored: what AWS says is the state.
//
// What the agent gets as its environment is in one Secrets Manager secret per revision, the invoke
// token too; the task definition, which anybody who may look at the account can read, refers to its
// keys. Only HOST, PORT and the settings of the platform are in clear.
//
// Await reads the service, its events, its target group and the tasks that stopped, and tells three
// kinds of trouble apart (failure.go). What the release is to blame for, as an image that does not
// exist or a container that ends, is Failed with a message, at the first time. What may pass, as a
// registry that throttles or a lack of capacity, is tried by ECS until its circuit breaker or
// ReadyLimit ends that. What the platform is to blame for, as a role that may not read the secret,
// is an error. Requests that are throttled or meet a fault of a service are sent again by the SDK;
// any other refusal of a request is an error.
//
// A restart has the service replace its tasks by those of another task definition (restart.go).
// Until they have taken over, the release is what the tasks before it are: that the others do not
// start is told of the restart.
//
// Remove deletes the listener rule, so that no more callers come in, then the service. ECS takes
// its tasks out of the target group, which lets requests that are under way finish within
// DrainLimit, and stops them after that. Meanwhile the target group must stay. Remove does not wait
// for it, since its caller has seconds, nor does it end with an error, since nobody would retry for
// that long: it marks the target group, and Sweep, which a timer calls and every Remove too,
// deletes marked ones whose service is gone. All else is deleted at once.
package ecs

// Actions are what the package needs to be allowed. Acquire needs none of them, except
// ecs:DescribeExpressGatewayService with Express Mode. Passing and tagging are no requests of their
// own, but what other requests ask for.
var Actions = []string{
	"application-autoscaling:DeregisterScalableTarget",
	"application-autoscaling:PutScalingPolicy",
	"application-autoscaling:RegisterScalableTarget",
	"ecs:CreateExpressGatewayService",
	"ecs:CreateService",
	"ecs:DeleteExpressGatewayService",
	"ecs:DeleteService",
	"ecs:DeleteTaskDefinitions",
	"ecs:DeregisterTaskDefinition",
	"ecs:DescribeExpressGatewayService",
	"ecs:DescribeServices",
	"ecs:DescribeTaskDefinition",
	"ecs:DescribeTasks",
	"ecs:ListServiceDeployments",
	"ecs:ListTaskDefinitions",
	"ecs:ListTasks",
	"ecs:RegisterTaskDefinition",
	"ecs:TagResource",
	"ecs:UpdateExpressGatewayService",
	"ecs:UpdateService",
	"elasticloadbalancing:AddTags",
	"elasticloadbalancing:CreateRule",
	"elasticloadbalancing:CreateTargetGroup",
	"elasticloadbalancing:DeleteRule",
	"elasticloadbalancing:DeleteTargetGroup",
	"elasticloadbalancing:DescribeRules",
	"elasticloadbalancing:DescribeTags",
	"elasticloadbalancing:DescribeTargetGroups",
	"elasticloadbalancing:DescribeTargetHealth",
	"elasticloadbalancing:ModifyTargetGroupAttributes",
	"elasticloadbalancing:RemoveTags",
	"iam:PassRole",
	"secretsmanager:CreateSecret",
	"secretsmanager:DeleteSecret",
	"secretsmanager:PutSecretValue",
	"secretsmanager:TagResource",
}
