package controlplane_test

// Rules about integrations and pushes.
const (
	integrationField  = "`integration_id`: uuid or null; applies to github; one that is unknown, of another workspace or for another host is a 400; is refused by PATCH."
	integrationShapes = "Integrations: every operation answers with its success status in the shape of the interface, at the root and under `/api-host`."
	integrationForge  = "…/v1/integrations/forge/github/… and …/v2/integrations/forge-github/… are those of the GitHub App under another name."
	installLists      = "GET /v1/integrations/github/install and …/{integration_id}/repos are plain arrays; the v2 forms have `page_size` 1 to 100 (20), `cursor` and `{items, next_cursor}`."
	installFlow       = "An installation is bound to the workspace whose link was opened, once, and only if GitHub says that it is up to who consented; no code, state or token is shown or logged."
	installCSRF       = "GET of the callback connects nothing: it names the workspace and asks; POST from a page of another site is a 403."
	credentialRules   = "Git credentials: `host`, `user` and `token` are required, the host is immutable, PATCH changes user or token; no answer or log has the token."
	credentialUse     = "An integration that a deployment is built with is not deleted: 409 until the deployment is deleted, also when both meet."
	integrationTag    = "An installation and git credentials have an ETag: 304, and 412 for an If-Match with another one."
	integrationOthers = "Integrations of another workspace are a 404, as what does not exist."
	integrationRoles  = "Integrations: editors do not delete, viewers only read; the secret of a push hook takes the permission to update deployments."
	pushSigned        = "A webhook that is not signed with the secret, over the raw body, is a 401 and does nothing; one that is too large is a 413."
	pushBuilds        = "A push to the branch of a deployment with `build_on_push`, also the push that creates the branch, is a 202 and makes a revision of the same configuration."
	pushOther         = "Tags, other branches, other repositories, branches that are deleted, and deployments whose `build_on_push` is false make no revision."
	pushOnce          = "A delivery that comes again makes no second revision."
	pushBurst         = "A burst of pushes collapses to the newest: those before it are SKIPPED."
	pushHookRule      = "GET …/push-hook has the URL and secret of a webhook for one deployment, at any host that signs as GitHub does, and at GitLab; it is good for that deployment alone."
	pushGitLab        = "GitLab's webhook proves itself by the secret as `X-Gitlab-Token`. A Push Hook is held to the rules of pushes; other events are a 202 and do nothing."
)
