// Package trust holds, for each workspace, the rules whose tokens it trusts: which jobs of a CI service may act in it, and as what. A token is somebody
// else's word, so a rule says exactly whose: the issuer, and claims that must have these values.
//
// Every rule names the repository by its id. Names are no good for that: who deletes or renames a repository leaves its name to anybody, and what
// stands in the subject has changed its form more than once.
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

// Rule is whose tokens are trusted.
type Rule struct {
	ID   string `json:"-"`
	Name string `json:"name,omitempty"`
	// Issuer is the token's iss.
	Issuer string `json:"issuer"`
	// Claims are the claims that a token must have, with their values.
	Claims  map[string]string `json:"claims"`
	Role    workspace.Role    `json:"role"`
	Created time.Time         `json:"-"`
}

// idClaims are the claims by which CI services name a repository for good, and whether its values are numbers.
var idClaims = map[string]bool{
	"repository_id":                true,  // GitHub
	"project_id":                   true,  // GitLab
	"repositoryUuid":               false, // Bitbucket
	"oidc.circleci.com/project-id": false, // CircleCI
	"pipeline_id":                  false, // Buildkite
}

// claimEvent says what started a job.
const claimEvent = "event_name"

// foreignEvents start jobs with the repository's rights at the wish of somebody who has none there: who opens a pull request or an issue, comments on or reviews one,
// edits an open wiki, forks or stars the repository, or sets off what another workflow or a check follows.
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

// mismatch returns the claims of the rule that the token does not have with that value, sorted; none when the rule admits the token. About a token
// of another repository it says no more than that, so that strangers learn nothing about the rules.
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

// textOf is the text of a claim that has a single value.
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

// String is for the audit log.
func (r Rule) String() string {
	parts := []string{string(r.Role), r.Issuer}
	for _, claim := range slices.Sorted(maps.Keys(r.Claims)) {
		parts = append(parts, fmt.Sprintf("%s=%s", claim, r.Claims[claim]))
	}
	return strings.Join(parts, " ")
}
