// Package ecs is the compute target of an AWS account: a release is one Fargate service of its own.
//
// Behind the stack's load balancer (Fargate) a release consists of a task definition, a
// secret, a target group, a listener rule that forwards requests with the header
// X-Slipway-Revision to it, the service, and a scaling target if it may scale. With ECS
// Express Mode the service brings its own address, rules and scaling target, and costs a load
// balancer per 25 releases; the rest is the same.
//
// Services scale by the runs that are with their agents, not by CPU: an agent that waits for
// models uses 2 to 5 % of its CPU with hundreds of runs (scale.go).
//
// All names are derived from the revision's id (names.go), and every step first asks AWS which
// resources exist, so Apply and Remove may be cut off anywhere and repeated. The service is
// made last, and deleted before the resources that it needs. The package stores nothing: the
// answers of AWS are the state.
//
// The agent's environment, with the invoke token, is in one Secrets Manager secret per
// revision. The task definition refers to the keys of the secret, because everybody with read
// access to the account can read a task definition. Only HOST, PORT and the settings of the
// platform are in clear text.
//
// Await reads the service, its events, its target group and the stopped tasks, and
// distinguishes three kinds of trouble (failure.go). Trouble that the release causes, for
// example an image that does not exist or a container that ends, makes the release Failed with
// a message, at the first time. Trouble that may pass, for example a registry that throttles
// or a lack of capacity, is left to ECS, which tries again until its circuit breaker or the
// release's limit ends that. Trouble that the platform causes, for example a role that may not
// read the secret, is an error. The SDK sends requests again that are throttled or meet a fault
// of a service; any other refusal of a request is an error.
//
// The number of tasks follows the number of runs (scale.go), between the release's bounds. ECS
// itself prepares this for a service of Express Mode, so only Await, when the tasks serve, adds
// the policy to it.
//
// A restart makes the service replace its tasks by tasks of another task definition
// (restart.go). Until the new tasks have taken over, the status of the release is the status
// of the previous tasks. If the new tasks do not start, only the restart's status says so.
//
// Remove deletes the listener rule, so that no more callers come in, then the service. ECS
// takes its tasks out of the target group, which lets requests that are under way finish
// within compute.DrainLimit, and stops them after that. Meanwhile the target group must stay.
// Remove does not wait for the end of this, because its caller has only seconds. It does not
// return an error either, because no caller would retry for that long. Instead it marks the
// target group. Sweep, which a timer and every Remove call, deletes marked target groups whose
// service is gone. All other resources are deleted at once.
package ecs
