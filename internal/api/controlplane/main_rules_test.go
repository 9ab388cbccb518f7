package controlplane_test

// Rules about shapes within a ResourceSpec.
const (
	shapeLocalObject  = "LocalObjectReference: `name`, required."
	shapeVolume       = "Volume: `name` is required, a DNS label, unique within the pod; its sources are free-form objects or null."
	shapeMount        = "VolumeMount: `name` is required; `mountPath`, `subPath`, `subPathExpr`: string; `readOnly`: boolean; `mountPropagation`: None, HostToContainer, Bidirectional."
	shapeMountVolume  = "VolumeMount: `name` is that of a Volume, 422 otherwise, in containers too."
	shapeSize         = "`resource_spec` takes at most 131072 bytes as JSON, unknown members included, 400 otherwise."
	shapeScale        = "`min_scale` is at most `max_scale` if both are given, 422 otherwise."
	shapeContainer    = "Container: `name` (a DNS label, once in its list) and `image` are required; `imagePullPolicy`: Always, Never, IfNotPresent; `restartPolicy`: Always, OnFailure."
	shapeEnvVar       = "EnvVar: `name` is required, a C identifier; `value`: string or null."
	shapeValueFrom    = "EnvVar: `valueFrom` cannot be used when `value` is not empty."
	shapeRequirements = "ResourceRequirements: `limits` and `requests` are objects from string to string."
)

// rules are all rules of the interface that this package must keep, by chapter.
var rules = append(deploymentChapters, tenancyChapters...)

var deploymentChapters = []chapter{
	{"Deployment", prefixed("Deployment ", deploymentMembers)},
	{"DeploymentCreateRequest", []string{
		"Required: `name`, `source`, `source_config`, `source_revision_config`, `secrets`; each one that is missing is listed.",
		"`name`: 1 to 63 letters, digits, `-`, `_`, `.`, beginning with a letter or digit.",
		"`source`: `github`, `external_docker`, `internal_docker` or `internal_source`.",
		"Read-only members, unknown members and unknown query parameters are ignored.",
		"Creating a deployment creates its first revision, reported as `latest_revision_id`.",
		createdEmpty,
		"Creating a deployment creates a tracing project of the same name, in the same transaction.",
		projectReaches,
		"A name that is taken is a 409, also when 20 creates meet: one is a 201, the others are 409s.",
	}},
	{"SourceConfig and SourceRevisionConfig", append(fieldRules(configFields),
		sourceNeeds, integrationField,
		"`listener_id`: uuid or null; applies to external_docker; an unknown one is a 400; is refused by PATCH.",
		"`listener_config.k8s_namespace`: string or null; applies to external_docker; is refused by PATCH.",
		"`listener_config.k8s_namespace`: one of the listener's, 400 otherwise; the only one that there is when it is left out.",
		tarballPath, revisionSource, trackedPackages, ownImage, pushToken,
		"`repo_commit_sha`: string or null; read-only, in responses only.",
		commitShown,
		"`custom_url` is set by the server for github, and for external_docker until it is set.",
		"`custom_url`: empty text takes away the one that was set, without a revision.",
		"Members of the other source: null passes, a value is a 400 that names the member.",
		"A tag `repo_ref` with `build_on_push` true is a 400, on create and on the combined state after a PATCH or a redeploy.",
		"`repo_ref` is a branch's bare name or a tag's full path.",
		"`install_command` and `build_command` may not hold shell metacharacters, except `&&`.",
		"Credentials in a `repo_url` are never shown.",
	)},
	{"Secret", []string{
		"Secret: `name` and `value` are required strings.",
		"A name that the platform owns, or that is given twice, is a 400; predefined settings of the agent server may be set.",
		"PATCH replaces all secrets; an empty list removes them; null and absence keep them.",
		"`secrets` are shown to those who may change them, unless the server or the role redacts them; the mark sent back means unchanged.",
		secretsReach, secretsOutside, referencesMade,
	}},
	{"ResourceSpec", append(fieldRules(resourceFields),
		"CPU values are integers or fractions in steps of 0.1.",
		"A ResourceSpec is kept and shown as it was sent, unknown members and the digits of numbers included; defaults are not shown.",
		"A non-null `resource_spec` replaces the one before as a whole.",
		limitDefaults,
		shapeSize, shapeScale, shapeLocalObject, shapeVolume, shapeMount, shapeMountVolume, shapeContainer, shapeEnvVar, shapeValueFrom, shapeRequirements,
	)},
	{"Revision", append(prefixed("Revision ", revisionMembers),
		revisionFails,
		"Revision: `status_reason`, `status_message` and `phase_timestamps` say why and since when.",
	)},
	{"States", []string{
		"Deployment status: AWAITING_DATABASE -> READY -> AWAITING_DELETE -> 404.",
		"`latest_revision_id` moves at once, `active_revision_id` when a revision is promoted.",
		"A PATCH with a non-null value in `source_revision_config`, with `secrets` or `resource_spec` creates a revision; nothing else does.",
		"50 concurrent PATCHes: no revision is lost or stuck, the newest ends active, every other is DEPLOYED before it or SKIPPED.",
		"The reference flow: create, read, poll the revision to DEPLOYED, PATCH, delete.",
	}},
	{"Endpoints", append([]string{
		"Every operation answers with its success status in the shape of the interface, at the root and under `/api-host`.",
		jsonBodies,
		"PATCH: an absent or null member changes nothing; the 200 body is the Deployment after the change.",
		"PATCH: an immutable member with another value is a 400 that names it and changes nothing; with the same value it passes; setting one that was null is a change.",
		"PATCH with what GET has answered changes nothing.",
		"DELETE: 204; the deployment leaves the list at once, its name is free, a PATCH is a 409.",
		"GET /v2/deployments and …/revisions: `limit` 1 to 100 (20), `offset`; `{resources, offset}`, newest first.",
		"Lists: an opaque `cursor` beside `limit` and `offset`, which does not drift.",
		"GET …/revisions: filters `status` (a list with commas) and `remote_reconciled`.",
		"GET /v2/deployments/free-count counts the deployments of type `dev_free` and `dev_free_zero`.",
		"GET …/revisions/{revision_id}?wait=<s> answers when the revision has ended, or when the time is up; never later than 25 s.",
		uploadURL,
		"POST …/revisions: 201 Revision, always a new one; the optional body is a PATCH.",
		"POST …/revisions/{revision_id}/redeploy: 200 Deployment with a new revision from a deployed one's configuration, secrets, resources and build.",
		"POST …/revisions/{revision_id}/rollback is the same.",
		"POST …/revisions/{revision_id}/cancel: 200, and the revision is INTERRUPTED at once; what has ended otherwise is a 409.",
		"DELETE /v2/deployments?deployment_ids=: 200 for all, 207 for some, 404 for none; 1 to 100 ids.",
		"DELETE `force=true`: only for a deployment that was deleted before, else 400; it is gone at once.",
		recoveryWindow, undeleted,
		"DELETE `delete_tracing_project`: false keeps the tracing project, which the next deployment of the name takes over; true deletes it.",
		"`validate_only=true` on create and PATCH: every check, the Deployment as it would be, and no change.",
		logPages, logItems, logFound, logStream, logSecrets, logRefusals, buildShown, cancelBlocksNobody, autoRollback, readiness, canarySettings, canaryPromoted, restarts, displayName, tierRule, tierRefused,
	}, filterRules()...)},
	{"Listeners", []string{
		"Listener: `compute_type` (k8s), `compute_id`, `compute_config` are required; `version` is optional; a pair of type and id that is taken is a 409.",
		"PATCH of a listener changes `version` and `compute_config`; another `compute_type` or `compute_id` is a 400, the same passes.",
		"GET /v2/listeners: `limit` 1 to 100 (20), `offset`, `cursor`; `{resources, offset}`, newest first.",
		"A listener, or a namespace of it, that a deployment uses is not taken away: 409.",
		"Listeners: to speak for one takes the permission to update listeners, as it shows secrets.",
		"Listeners: `claim` waits for work, which is the image, the environment with secrets and token, and the resources; reports are numbered and decide what becomes of the release.",
		"Listeners: a revision whose listener does not call is DEPLOY_FAILED with LISTENER_OFFLINE, one that it does not make healthy with NOT_READY, in words.",
		"Listeners: one process at a time speaks for a listener; another is refused with 409 until the session is over, and the one before from then on.",
		outputKept, outputRefused, reportShown, listenerDiagnosed,
		"Listeners: the `url` of a report is https with a public address, 400 otherwise, unless the server allows others.",
		"A listener has a strong ETag: 304 for an `If-None-Match` that has it, 412 and no change for an `If-Match` without it; of many changes of one version one wins.",
	}},
	{"Integrations and pushes", []string{
		integrationShapes, integrationForge, installLists, installFlow, installCSRF, credentialRules, credentialUse, integrationTag, integrationOthers, integrationRoles,
		pushSigned, pushBuilds, pushOther, pushOnce, pushBurst, pushHookRule, pushGitLab,
	}},
	{"Secrets of the workspace", []string{
		secretShapes, secretRoles, secretOthers, secretMembers, secretPatched, secretUsed, secretConditions, secretListed, secretRotated, secretTooLarge, secretLogs,
	}},
	{"Events and webhooks", []string{
		eventShapes, eventsTell, eventsList, eventsStream, eventsWorkspace, eventsAgent, eventsListener, eventsOthers,
		webhookShapes, webhookRoles, webhookSecrets, webhookSigned, webhookRetried, webhookReplayed, webhookPrivate, webhookRules, webhookOthers,
	}},
	{"Manners", []string{endlessOperations, repeated, conditional, oneWins, limited, docsPage, metricsRule}},
	{"Authentication", []string{
		"`X-Api-Key` and `X-Tenant-Id`, or the key as a bearer token; a key alone is enough.",
		"Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.",
		"Roles: what a role lacks is a 403.",
		"What belongs to another workspace is a 404, as what does not exist.",
	}},
	{"Errors", []string{
		"Every error is `{\"detail\": ...}`: a sentence, or a list for 422.",
		"422: `detail` lists every problem with `loc`, `msg` and `type`.",
		"Rules between members are a 400 that names all that are broken, and nothing is changed.",
		"JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.",
		"Ids are uuids in any case of letters; others are a 422.",
		"Each response carries X-Request-Id; one that the client has given is kept.",
		"`/openapi.json` has `info.version` 0.1.0.",
	}},
}

// Members of responses. The members that the tables of the interface call read-only come from
// the server alone.
var (
	deploymentMembers = []string{
		"`name`: string.", "`source`: `github`, `external_docker`, `internal_docker` or `internal_source`.", "`source_config`: SourceConfig, all members shown.",
		"`source_revision_config`: SourceRevisionConfig of the latest revision, all members shown.", "`secrets`: array of Secret.", "`id`: uuid.",
		"`tenant_id`: uuid of the workspace.",
		"`created_at`: date-time.", "`updated_at`: date-time.", "`status`: one of the five.", "`latest_revision_id`: uuid or null.",
		"`active_revision_id`: uuid or null; the one that serves.", imageVersion,
	}
	revisionMembers = []string{
		"`id`: uuid.", "`status`: one of the thirteen.", "`created_at`, `updated_at`: date-time.", "`source`: as the deployment's.",
		"`source_revision_config`: that of the revision itself.",
	}
)

const imageVersion = "`image_version`: string or null; the version of the agent server that the newest revision was made for."

func prefixed(prefix string, sentences []string) []string {
	all := make([]string, len(sentences))
	for i, sentence := range sentences {
		all[i] = prefix + sentence
	}
	return all
}

func fieldRules(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.rule()
	}
	return all
}

func filterRules() []string {
	var all []string
	for _, name := range []string{
		"name", "name_contains", "agent_id", "agent_environment", "status", "image_version", "deployment_type", "deployment_ids", "tag_value_ids", "remote_reconciled", "limit", "offset",
	} {
		all = append(all, "GET /v2/deployments: filter `"+name+"`.")
	}
	return all
}
