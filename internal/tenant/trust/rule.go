// Package trust stores the trust rules of each workspace. A rule lets jobs of a CI service act in
// the workspace with a role. It admits a token that comes from the rule's issuer and has every
// claim of the rule with exactly the given value.
//
// Every rule identifies the repository by its id. A name is not safe: any person can take the
// name of a deleted or renamed repository. The subject claim is not enough either, because CI
// services have changed its format more than once.
package trust

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Rule describes the tokens that a workspace trusts, and the role that they get.
type Rule struct {
	ID   string `json:"-"`
	Name string `json:"name,omitempty"`
	// Issuer is the required iss claim of the token.
	Issuer string `json:"issuer"`
	// Claims maps each claim that a token must have to its required value.
	Claims  map[string]string `json:"claims"`
	Role    workspace.Role    `json:"role"`
	Created time.Time         `json:"-"`
}

// idClaims are the claims that hold a permanent id in the tokens of CI services. The value says
// whether the id is a number.
var idClaims = map[string]bool{
	"repository_id":                true,  // GitHub
	"project_id":                   true,  // GitLab
	"repositoryUuid":               false, // Bitbucket
	"oidc.circleci.com/project-id": false, // CircleCI
	"pipeline_id":                  false, // Buildkite
}

// claimEvent is the claim that names the event that started a job.
const claimEvent = "event_name"

// foreignEvents are events that a person without rights in the repository can cause, although the
// job then runs with the repository's rights. Examples are an issue, a review, a fork or a star. A
// rule admits such a job only if its own event_name claim names the event.
var foreignEvents = []string{
	"check_run", "check_suite", "commit_comment", "discussion", "discussion_comment", "fork", "gollum", "issue_comment", "issues",
	"pull_request_review", "pull_request_review_comment", "pull_request_target", "status", "watch", "workflow_run",
}

const (
	longestText = 500
	maxClaims   = 20
)

func (r Rule) check() error {
	if _, err := workspace.ParseRole(string(r.Role)); err != nil {
		return err
	}
	if issuer, err := url.Parse(r.Issuer); err != nil || issuer.Scheme == "" || issuer.Host == "" || len(r.Issuer) > longestText {
		return fault.New(fault.Invalid, "%q is not the address of an issuer.", r.Issuer)
	}
	if len(r.Name) > longestText || !utf8.ValidString(r.Name) {
		return fault.New(fault.Invalid, "A rule's name has up to %d bytes.", longestText)
	}
	return r.checkClaims()
}

func (r Rule) checkClaims() error {
	if len(r.Claims) > maxClaims {
		return fault.New(fault.Invalid, "A rule names up to %d claims.", maxClaims)
	}
	named := false
	for _, claim := range slices.Sorted(maps.Keys(r.Claims)) {
		value := r.Claims[claim]
		if claim == "" || value == "" || len(claim)+len(value) > longestText || !utf8.ValidString(claim+value) {
			return fault.New(fault.Invalid, "The claim %q needs a value of up to %d bytes.", claim, longestText)
		}
		numeric, isID := idClaims[claim]
		if _, err := strconv.ParseUint(value, 10, 64); isID && numeric && err != nil {
			return fault.New(fault.Invalid, "The claim %s is a number, not %q.", claim, value)
		}
		named = named || isID
	}
	if !named {
		return fault.New(fault.Invalid, "A rule must name the repository by its id, which no rename changes: one of the claims %s.",
			strings.Join(slices.Sorted(maps.Keys(idClaims)), ", "))
	}
	return nil
}

// mismatch returns the sorted names of the claims that keep the rule from admitting the token. The
// list is empty if the rule admits it. For a token of another repository the list holds only the id
// claim: strangers must not learn the other claims of a rule.
func (r Rule) mismatch(claims map[string]any) []string {
	var missing []string
	for claim, want := range r.Claims {
		if got, ok := textOf(claims[claim]); !ok || got != want {
			if _, isID := idClaims[claim]; isID {
				return []string{claim}
			}
			missing = append(missing, claim)
		}
	}
	if got, _ := textOf(claims[claimEvent]); slices.Contains(foreignEvents, got) && r.Claims[claimEvent] != got {
		missing = append(missing, claimEvent)
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// textOf returns the text of a claim. It returns false for a list, an object or a missing claim.
func textOf(claim any) (string, bool) {
	switch claim := claim.(type) {
	case string:
		return claim, true
	case bool:
		return strconv.FormatBool(claim), true
	case json.Number:
		return claim.String(), true
	case float64:
		return strconv.FormatFloat(claim, 'f', -1, 64), true
	default:
		return "", false
	}
}

// String returns the rule's text for the audit log.
func (r Rule) String() string {
	parts := []string{string(r.Role), r.Issuer}
	for _, claim := range slices.Sorted(maps.Keys(r.Claims)) {
		parts = append(parts, fmt.Sprintf("%s=%s", claim, r.Claims[claim]))
	}
	return strings.Join(parts, " ")
}
