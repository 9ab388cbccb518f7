// Package keys is the only place that builds or parses the text of storage keys.
//
// Every partition begins with the workspace, so that no request can reach another tenant's
// data by naming an id. Eleven kinds of partition cannot begin with it, because they are read
// before the tenant is known or without a tenant:
//
//   - an API key, which is looked up by its MAC;
//   - the sign-in codes and sessions of browsers, which are looked up by their hashes;
//   - the names of workspaces;
//   - the data keys, which are wrapped, and useless without KMS;
//   - builds (ids of CodeBuild's), for a builder that gets only a revision's id;
//   - workflow executions of the one-machine engine;
//   - the names of deployments by their ids: health checks show no key, and learn only that an
//     agent serves;
//   - the one-machine server's own records: when it was last alive, and the work that it died with;
//   - the notes which deployments encrypt what they store: a server reads all of them when it
//     starts;
//   - the bindings of an installation of the GitHub App, whose events name no tenant. They hold
//     references only;
//   - the entries that timers look at (leases, releases, rollouts, listeners, deliveries of
//     webhooks, crons, times to live). They hold references only.
//
// Access patterns, and the one read that serves each:
//
//	authenticate a request            Get APIKey
//	sign a browser in                 Get SignInCode; then each of its requests Get Session
//	open the data keys                Query DataKeys
//	workspace by id                   Get Workspace
//	workspaces, by name               Query WorkspaceNames; one of them Get WorkspaceName
//	members of a workspace            Query Members; one of them Get Member
//	API keys of a workspace           Query APIKeyRecords; one of them Get APIKeyRecord
//	trust rules of a workspace        Query TrustRules
//	audit log, newest first           Query AuditLog, reverse
//	was the request executed before   condition on Answer; Get Answer
//	deployment by id                  Get Deployment
//	is an agent serving               Query DeploymentWithID (index due), then Get Deployment
//	deployment's revisions, newest    Query Revisions, reverse
//	deployments of a workspace        Query DeploymentList (index list), reverse
//	deleted deployments, newest first Query DeletedDeployments (index list), reverse
//	how many of the free type         Query FreeDeployments (index list)
//	is the name free                  condition on DeploymentName in the creating transaction
//	releases to keep running          Query Releases (index due)
//	build of a revision, by its id    Get Build
//	slots for a workspace's builds    Get each BuildSlot
//	rollouts that are overdue         Query Rollouts (index due) up to now
//	workflow execution by name        Get Execution
//	executions to resume              Query RunningExecutions (index list)
//	how the previous engine ended     Get ServerAlive
//	work that servers died with       Get Trial
//	executions of a machine           Query Executions
//	thread with its lock              Get Thread
//	thread's runs, newest first       Query Runs, reverse
//	permit for a run, waiting runs    Query Permits of its thread's row, limit RowPermits + 1
//	deployment's busy threads         Query BusyThreads (index due), for each shard
//	runs that are being removed       Query RunsBetween, and what they wrote: Query
//	                                  CheckpointsAfter and Events
//	next queued run                   Query Runs after the active one, limit 1
//	run's events after a position     Query Events from that position
//	thread's state                    Query Checkpoints, reverse, until a snapshot
//	checkpoint by the server's id     its number is in the id; Get Checkpoint
//	checkpoint by the agent's id      Get CheckpointName, then Query Checkpoints
//	history, newest first             Query Checkpoints, reverse, from a number
//	agent's state to continue from    Query Frames, reverse, until a whole one; Query FramesSince;
//	                                  for each lasting subgraph Query KeptFrames
//	request of a run                  Get RunRequest, where it is not in the run's item
//	copy of a thread                  Query each of CheckpointLog
//	assistants of a deployment        Query Assistants; one of them Get Assistant
//	how many assistants there are     Get AssistantCount; condition on it in the creating
//	                                  transaction
//	versions of an assistant, newest  Query AssistantVersions; one of them Get AssistantVersion
//	threads of a deployment           Query ThreadLists (index list), each shard; metadata and
//	                                  status are in the entries
//	how long a thread lives           Get ThreadTTL
//	threads whose time is over        Query DueThreads (index due) up to now, for each shard
//	item of the store                 Get StoreItem
//	items below a namespace           Query StoreItemsBelow; of all namespaces, for each first
//	                                  label of StoreNamespaces
//	vectors of an item                Get StoreVectors; of a page of items, Query
//	                                  StoreVectorsBetween
//	is a namespace empty              Query StoreItemsOf, limit 1
//	namespaces of a deployment        Query StoreNamespaces (index list)
//	deployments that encrypt          Query AllEncrypted
//	crons of a deployment             Query Crons; one of them Get Cron
//	how many crons there are          Get CronCount; condition on it in the creating transaction
//	crons that are due                Query DueCrons (index due) up to now, for each shard
//	runs whose worker is overdue      Query Leases (index due) up to now, for each shard
//	runs whose client has gone        Query DueClients (index due) up to now, for each shard; Get
//	                                  RunClient
//	OAuth provider by name            Get AuthProvider
//	OAuth providers of a workspace    Query AuthProviders
//	request for consent               Get AuthRequest (the workspace is part of its state)
//	user's OAuth tokens               Query AuthTokens and AuthDefaults; one of them Get AuthToken
//	how many OAuth tokens there are   condition on AuthTokenCount in the creating transaction
//	events of a user's tokens, newest Query AuthEvents, reverse
//	tokens that an agent may use      Query AuthConnections, then GetBatch AuthToken
//	agents that may use a token       Query AuthConnectionList (index list), to take it from them
//	tokens of a provider              Query AuthTokenList (index list), to delete them with it
//	installations of a workspace      Query GitHubIntegrations
//	credentials for git hosts         Query GitCredentials
//	integration by id                 GetBatch GitHubIntegration, GitCredential
//	does a deployment use it          Query IntegrationUses, limit 1
//	request to install the App        Get InstallRequest; condition on it in the claim (the
//	                                  workspace is part of its state)
//	is the installation bound already condition on InstallationBinding in the binding transaction;
//	                                  Get it for a callback that comes again
//	workspaces of an installation     Query InstallationBindings (index list)
//	may an installation be bound      Get InstallationGate; condition on it in the binding
//	                                  transaction
//	deployments that a push builds    Query PushWatches (index list), for each workspace of the
//	                                  installation
//	was the push delivered before     condition on PushDelivery
//	earlier names of a repository     Get RepositoryNames
//	listeners that may be away        Query DueListeners (index due) up to now, for each shard
//	listener by id                    Get Listener; all of a workspace Query Listeners
//	has the compute_id a listener     condition on ListenerName in the creating transaction
//	does a deployment use a listener  Query ListenerUses or ListenerNamespaceUses, limit 1
//	tasks of a listener               Query ListenerTasks, then GetBatch ListenerRelease; woken by
//	                                  ListenerWake
//	release at a listener             Get ListenerRelease
//	how much a release may print      GetBatch ListenerRelease, ListenerOutput
//	releases of a listener            Query ListenerReleases (index list)
//	state of a listener's work        Get Listener, Query ListenerTasks, ListenerReleases (index
//	                                  list), ListenerUses, one page each
//	deployment's events after one     Query DeploymentEvents; woken by Deployment
//	workspace's events after a moment Query WorkspaceEvents (index list), for each shard
//	webhooks of a workspace           Query Webhooks; one of them Get Webhook
//	how many webhooks there are       condition on WebhookCount in the creating transaction
//	deliveries of a webhook, newest   Query WebhookDeliveries, reverse; one of them Get
//	                                  WebhookDelivery
//	deliveries that are overdue       Query DueDeliveries (index due) up to now, for each shard
package keys
