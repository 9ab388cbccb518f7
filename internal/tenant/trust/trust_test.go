package trust_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const github = "https://ci.test"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func setUp(t *testing.T) (*trust.Store, table.Table) {
	t.Helper()
	// Rules are distinguished by their creation time.
	clock := fixtures.NewClockAt(now, time.Millisecond).Now
	tb := fixtures.Table(t, sqlite.WithClock(clock))
	for _, w := range []string{"one", "two"} {
		check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Workspace(w)}}))
	}
	return trust.NewStore(tb, clock), tb
}

type claims = map[string]string

func create(t *testing.T, s *trust.Store, role workspace.Role, c claims) trust.Rule {
	t.Helper()
	r, err := s.Create(t.Context(), "one", trust.Rule{Name: "deploy", Issuer: github, Role: role, Claims: c})
	check.Must(t, err)
	return r
}

func TestARuleIsReadBackUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	s, tb := setUp(t)
	r := create(t, s, workspace.Editor, claims{"repository_id": "7", "ref": "refs/heads/main"})
	list, err := s.List(t.Context(), "one")
	if diff := cmp.Diff([]trust.Rule{r}, list); err != nil || diff != "" || r.ID == "" || !r.Created.After(now) {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, c := range []struct{ workspace, id string }{{"two", r.ID}, {"one", "x"}, {"one", "0197a000-0000-7000-8000-00000000dead"}} {
		if err := s.Delete(t.Context(), c.workspace, c.id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v", c, err)
		}
	}
	check.Must(t, s.Delete(t.Context(), "one", r.ID))
	if _, err := s.Admit(t.Context(), "one", github, map[string]any{"repository_id": "7", "ref": "refs/heads/main"}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a deleted rule admits: %v", err)
	}
	log, _, err := audit.NewStore(tb, func() time.Time { return now }).List(t.Context(), "one", audit.Filter{}, record.Window{})
	actions := map[audit.Action]string{}
	for _, e := range log {
		actions[e.Action] = e.Detail
	}
	want := map[audit.Action]string{
		audit.CreateTrustRule: "editor https://ci.test ref=refs/heads/main repository_id=7", audit.DeleteTrustRule: "",
	}
	if diff := cmp.Diff(want, actions); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := setUp(t)
	good := trust.Rule{Issuer: github, Role: workspace.Editor, Claims: claims{"repository_id": "7"}}
	many := claims{"repository_id": "7"}
	for i := range 20 {
		many[strings.Repeat("x", i+1)] = "x"
	}
	for name, c := range map[string]struct {
		workspace string
		change    func(*trust.Rule)
		want      fault.Kind
		words     string
	}{
		"no claims":               {"one", func(r *trust.Rule) { r.Claims = nil }, fault.Invalid, "by its id"},
		"a name only":             {"one", func(r *trust.Rule) { r.Claims = claims{"repository": "o/r", "sub": "repo:o/r:ref:refs/heads/main"} }, fault.Invalid, "repository_id"},
		"the owner's id only":     {"one", func(r *trust.Rule) { r.Claims = claims{"repository_owner_id": "7"} }, fault.Invalid, "by its id"},
		"an id that is no number": {"one", func(r *trust.Rule) { r.Claims = claims{"repository_id": "o/r"} }, fault.Invalid, "number"},
		"an empty value":          {"one", func(r *trust.Rule) { r.Claims["ref"] = "" }, fault.Invalid, `"ref"`},
		"a long value":            {"one", func(r *trust.Rule) { r.Claims["ref"] = strings.Repeat("x", 500) }, fault.Invalid, `"ref"`},
		"many claims":             {"one", func(r *trust.Rule) { r.Claims = many }, fault.Invalid, "20"},
		"no issuer":               {"one", func(r *trust.Rule) { r.Issuer = "" }, fault.Invalid, "issuer"},
		"no address":              {"one", func(r *trust.Rule) { r.Issuer = "ci" }, fault.Invalid, "issuer"},
		"no role":                 {"one", func(r *trust.Rule) { r.Role = "" }, fault.Invalid, "role"},
		"a long name":             {"one", func(r *trust.Rule) { r.Name = strings.Repeat("x", 501) }, fault.Invalid, "name"},
		"an unknown workspace":    {"three", func(*trust.Rule) {}, fault.NotFound, "three"},
	} {
		r := good
		r.Claims = maps.Clone(good.Claims)
		c.change(&r)
		if _, err := s.Create(t.Context(), c.workspace, r); !fault.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: got %v, want a fault of kind %s with %q", name, err, c.want, c.words)
		}
	}
	for _, id := range []claims{{"project_id": "7"}, {"repositoryUuid": "{a}"}, {"oidc.circleci.com/project-id": "a-b"}, {"pipeline_id": "a"}} {
		create(t, s, workspace.Viewer, id)
	}
}

func TestWhomRulesAdmit(t *testing.T) {
	t.Parallel()
	s, _ := setUp(t)
	create(t, s, workspace.Viewer, claims{"repository_id": "7"})
	create(t, s, workspace.Editor, claims{"repository_id": "7", "ref": "refs/heads/main", "environment": "production"})
	create(t, s, workspace.Editor, claims{"repository_id": "8", "ref": "refs/heads/main", "ref_protected": "true"})
	create(t, s, workspace.Admin, claims{"repository_id": "9", "event_name": "pull_request_target"})
	create(t, s, workspace.Admin, claims{"repository_id": "10"})
	create(t, s, workspace.Viewer, claims{"repository_id": "10"})
	type token = map[string]any
	const none = "No trust rule of the workspace admits this token."
	for name, c := range map[string]struct {
		workspace, issuer string
		claims            token
		want              workspace.Role
		words             string
	}{
		"the weakest":                 {"one", github, token{"repository_id": "7", "ref": "refs/heads/x", "sub": "anything"}, workspace.Viewer, ""},
		"the strongest that fits":     {"one", github, token{"repository_id": "7", "ref": "refs/heads/main", "environment": "production"}, workspace.Editor, ""},
		"in whatever order":           {"one", github, token{"repository_id": "10"}, workspace.Admin, ""},
		"a number and a truth value":  {"one", github, token{"repository_id": json.Number("8"), "ref": "refs/heads/main", "ref_protected": true}, workspace.Editor, ""},
		"another workspace":           {"two", github, token{"repository_id": "7"}, "", none},
		"another issuer":              {"one", "https://other.test", token{"repository_id": "7"}, "", none},
		"another repository":          {"one", github, token{"repository_id": "77", "ref": "refs/heads/main"}, "", none},
		"no id, but the name":         {"one", github, token{"repository": "o/r", "sub": "repo:o/r:ref:refs/heads/main"}, "", none},
		"another ref":                 {"one", github, token{"repository_id": "8", "ref": "refs/heads/x", "ref_protected": "true"}, "", "in ref."},
		"a ref that begins alike":     {"one", github, token{"repository_id": "8", "ref": "refs/heads/main2", "ref_protected": "true"}, "", "in ref."},
		"two claims":                  {"one", github, token{"repository_id": "8"}, "", "in ref, ref_protected."},
		"a list is no single value":   {"one", github, token{"repository_id": []any{"7"}}, "", none},
		"a stranger's change":         {"one", github, token{"repository_id": "7", "event_name": "pull_request_target"}, "", "in event_name."},
		"a stranger's change, named":  {"one", github, token{"repository_id": "9", "event_name": "pull_request_target"}, workspace.Admin, ""},
		"a comment":                   {"one", github, token{"repository_id": "7", "event_name": "issue_comment"}, "", "in event_name."},
		"an issue":                    {"one", github, token{"repository_id": "7", "event_name": "issues"}, "", "in event_name."},
		"after a stranger's workflow": {"one", github, token{"repository_id": "7", "event_name": "workflow_run"}, "", "in event_name."},
		"a discussion":                {"one", github, token{"repository_id": "7", "event_name": "discussion_comment"}, "", "in event_name."},
		"a star":                      {"one", github, token{"repository_id": "7", "event_name": "watch"}, "", "in event_name."},
		"a comment where another one": {"one", github, token{"repository_id": "9", "event_name": "issue_comment"}, "", "in event_name."},
		"a push":                      {"one", github, token{"repository_id": "7", "event_name": "push"}, workspace.Viewer, ""},
		"another event than is named": {"one", github, token{"repository_id": "9", "event_name": "push"}, "", "in event_name."},
	} {
		r, err := s.Admit(t.Context(), c.workspace, c.issuer, c.claims)
		if c.want != "" && (err != nil || r.Role != c.want) {
			t.Errorf("%s: got %v (%v), want %s", name, r, err, c.want)
		}
		if c.want == "" && (!fault.Is(err, fault.Forbidden) || !strings.HasSuffix(err.Error(), c.words)) {
			t.Errorf("%s: got %v (%v), want %q", name, r, err, c.words)
		}
	}
}
