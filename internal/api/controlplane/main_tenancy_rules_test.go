package controlplane_test

// Rules about permissions, which several tests name.
const (
	tenancyShapes = "Workspaces: every operation answers with its success status in the shape of the document, at the root and under `/api-host`."
	tenancyRoles  = "Workspaces: an admin may everything; editors and viewers read the workspace, its members and its trust rules, and neither keys nor the audit log; the rest is a 403."
	lastAdmin     = "Workspaces: the last admin, a member or an API key that does not expire, is neither removed, demoted nor revoked: 409, also when all are taken away at once."
	memberTag     = "Workspaces: a member has an ETag; If-Match with another one is a 412, and of many changes of one version one wins."
	keyOnce       = "Workspaces: an API key is shown when it is made and never again, in no list, log or repetition."
	keyRepeated   = "Workspaces: under one `Idempotency-Key` one API key is made; a repetition is a 409 that names it."
	keyLife       = "Workspaces: a key is good at once, until it expires or is revoked; lists show role, prefix, expiry and last use."
	auditLog      = "Workspaces: each change of members, rules, keys, names and deployments is in the audit log, with who did it and the id of the request."
	auditRefusals = "What a role does not allow is in the audit log too: the request, whose outcome is `refused`, and what was lacking."
	auditFilters  = "GET /v2/audit-log: newest first, `limit`, `cursor`, and the filters `action`, `resource`, `key_id`, `subject`, `outcome`, `since`, `until`."
	membersOnce   = "Workspaces: a user is a member once; an email address is the same in any case of letters, a subject is that of an issuer."
	trustedJobs   = "Bearer tokens: a job of a trusted repository deploys with the rule's role and without a stored key; other repositories, refs, workspaces are a 403, other issuers and forgeries a 401."
	memberTokens  = "Bearer tokens: a member's token acts with the member's role at each moment, and not at all before and after."
	rotatedIssuer = "Bearer tokens: keys that the issuer adds are taken, and those that it withdraws no longer."
	trustByID     = "Workspaces: a trust rule names the repository by its id; one that does not is a 400."
)

// Rules of the Auth Service.
const (
	authShapes  = "Auth Service: every operation answers with its success status in the shape of the document, at the root and under `/api-host`."
	authRoles   = "Auth Service: what a role lacks is a 403; to wait for a token takes the permission to create one."
	authShape   = "Auth Service: requests of the wrong shape are a 422 that names the member."
	authRules   = "Auth Service: a broken rule is a 400, a `provider_id` that is taken a 409, what is not there a 404."
	authNull    = "Auth Service: members that are null or absent change nothing."
	authFlow    = "Auth Service: authenticate, consent, callback and wait give the user's token; a state is good once; secrets, codes and states are in no answer, page or log, except in the address to which the button of a page leads."
	authAgreed  = "Auth Service: an account is connected only when its user agrees on a page of this server that names the workspace, the user and the provider."
	authDenied  = "Auth Service: a refusal of the provider is told to the browser and to who waits, without markup of the provider's."
	authSetup   = "Auth Service: GET …/setup/{provider_id} is a page, and with a state a callback."
	authWait    = "Auth Service: GET …/wait/{auth_id} answers when there is a token, or when `timeout` or the server's limit is over."
	authKept    = "Auth Service: with an `Idempotency-Key` a user is asked once; answers with tokens are not kept for repetitions."
	authOthers  = "Auth Service: who has signed in acts for nobody else; keys and admins name a user; a key has tokens of its own."
	authSlack   = "Auth Service: tokens/workspace/slack are all of the workspace's tokens at Slack, and no others."
	authHead    = "Auth Service: HEAD of a callback uses neither its code nor its state."
	authVersion = "Auth Service: a provider has an ETag; If-Match with another one is a 412 and changes nothing, and of many changes of one version one wins."
)

// tenancyChapters are further chapters of rules.
var tenancyChapters = []chapter{
	{"Auth Service", []string{
		authShapes, authRoles, authShape, authRules, authNull, authFlow, authAgreed, authDenied, authSetup, authWait, authKept, authOthers, authSlack, authVersion, authHead,
	}},
	{"Workspaces, members, keys, audit log", []string{
		tenancyShapes, tenancyRoles, lastAdmin, membersOnce, memberTag, trustByID, keyOnce, keyRepeated, keyLife, trustedJobs, memberTokens, rotatedIssuer, auditLog, auditFilters, auditRefusals,
	}},
}
