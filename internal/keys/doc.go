// Package keys is the only place that builds or parses the text of storage keys.
//
// Every partition begins with the workspace, so that no request can reach another tenant's data by naming an id. Three kinds of
// partition cannot, because they are read before or without a tenant: an API key (looked up by its MAC), workflow executions of
// the one-machine engine, and what timers look at (leases, releases, which hold references only).
//
// Access patterns, and the one read that serves each:
//
//	authenticate a request            Get APIKey
//	workspace by id                   Get Workspace
//	deployment by id                  Get Deployment
//	deployment's revisions, newest    Query Revisions, reverse
//	deployments of a workspace        Query DeploymentList (index list), reverse
//	is the name free                  condition on DeploymentName in the creating transaction
//	releases to keep running          Query Releases (index due)
//	rollouts that are overdue         Query Rollouts (index due) up to now
//	workflow execution by name        Get Execution
//	executions to resume              Query RunningExecutions (index list)
//	thread with its lock              Get Thread
//	thread's runs, newest first       Query Runs, reverse
//	next queued run                   Query Runs after the active one, limit 1
//	run's events after a position     Query Events from that position
//	thread's state                    Query Checkpoints, reverse, until a snapshot
//	threads of a deployment           Query ThreadList (index list), reverse
//	runs whose worker is overdue      Query Leases (index due) up to now, for each shard
package keys
