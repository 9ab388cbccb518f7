package controlplane_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/test/check"
)

// problem is one entry of a 422.
type problem struct{ Loc, Type string }

// problems are the entries of an answer, in its order.
func problems(t *testing.T, r response) []problem {
	t.Helper()
	wantError(t, r, http.StatusUnprocessableEntity)
	var found []problem
	for _, entry := range r.member("detail").([]any) {
		entry := entry.(map[string]any)
		var loc []string
		for _, token := range entry["loc"].([]any) {
			loc = append(loc, fmt.Sprint(token))
		}
		found = append(found, problem{strings.Join(loc, "."), entry["type"].(string)})
	}
	return found
}

// with returns a request with a member replaced, by its path.
func with(body object, path string, value any) object {
	name, rest, deeper := strings.Cut(path, ".")
	changed := object{}
	maps.Copy(changed, body)
	if deeper {
		inner, _ := body[name].(object)
		value = with(inner, rest, value)
	}
	changed[name] = value
	return changed
}

// TestABodyOfTheWrongShapeIsRefused breaks one member at a time.
func TestABodyOfTheWrongShapeIsRefused(t *testing.T) {
	t.Parallel()
	rule(t, "JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.")
	rule(t, "`name`: 1 to 63 letters, digits, `-`, `_`, `.`, beginning with a letter or digit.")
	rule(t, "`source`: `github`, `external_docker`, `internal_docker` or `internal_source`.")
	rule(t, "Secret: `name` and `value` are required strings.")
	git, image := fromGit("weather"), fromImage("weather")
	spec := func(path string, value any) object { return with(image, "source_config.resource_spec."+path, value) }
	for name, c := range map[string]struct {
		body any
		want problem
	}{
		"no body":                {nil, problem{"body", "missing"}},
		"an empty body":          {"", problem{"body", "missing"}},
		"not JSON":               {`{"name": `, problem{"body.9", "json_invalid"}},
		"two values":             {`{} {}`, problem{"body.4", "json_invalid"}},
		"not UTF-8":              {"{\"name\": \"\xff\"}", problem{"body.10", "json_invalid"}},
		"half a surrogate pair":  {`{"source_config": {"repo_url": "\ud83d"}}`, problem{"body.source_config.repo_url", "json_invalid"}},
		"a number of 400 digits": {`{"extra": [` + strings.Repeat("9", 400) + `]}`, problem{"body.extra.0", "json_invalid"}},
		"deep nesting":           {strings.Repeat("[", 501) + strings.Repeat("]", 501), problem{"body" + strings.Repeat(".0", 16), "json_invalid"}},
		"an array":               {`[]`, problem{"body", "model_attributes_type"}},
		"null":                   {`null`, problem{"body", "model_attributes_type"}},
		"a number for the name":  {with(git, "name", 1), problem{"body.name", "string_type"}},
		"an empty name":          {with(git, "name", ""), problem{"body.name", "string_too_short"}},
		"a long name":            {with(git, "name", strings.Repeat("a", 64)), problem{"body.name", "string_too_long"}},
		"a name with a slash":    {with(git, "name", "a/b"), problem{"body.name", "string_pattern_mismatch"}},
		"a name with a hash":     {with(git, "name", "a#b"), problem{"body.name", "string_pattern_mismatch"}},
		"a name with a newline":  {with(git, "name", "a\n"), problem{"body.name", "string_pattern_mismatch"}},
		"a name with a dash":     {with(git, "name", "-a"), problem{"body.name", "string_pattern_mismatch"}},
		"an unknown source":      {with(git, "source", "svn"), problem{"body.source", "enum"}},
		"a null source":          {with(git, "source", nil), problem{"body.source", "enum"}},
		"a null source_config":   {with(git, "source_config", nil), problem{"body.source_config", "model_attributes_type"}},
		"text for secrets":       {with(git, "secrets", "A=b"), problem{"body.secrets", "list_type"}},
		"null for secrets":       {with(git, "secrets", nil), problem{"body.secrets", "list_type"}},
		"an object for secrets":  {with(git, "secrets", object{"A": "b"}), problem{"body.secrets", "list_type"}},
		"a secret without value": {with(git, "secrets", []any{object{"name": "A"}}), problem{"body.secrets.0.value", "missing"}},
		"a null secret value":    {with(git, "secrets", []any{object{"name": "A", "value": nil}}), problem{"body.secrets.0.value", "string_type"}},
		"a secret with a NUL":    {with(git, "secrets", []any{object{"name": "A", "value": "b\x00"}}), problem{"body.secrets.0.value", "string_pattern_mismatch"}},
		"a secret with a space":  {with(git, "secrets", []any{object{"name": "A B", "value": ""}}), problem{"body.secrets.0.name", "string_pattern_mismatch"}},
		"integration_id":         {with(git, "source_config.integration_id", "x"), problem{"body.source_config.integration_id", "uuid_parsing"}},
		"integration_id's type":  {with(git, "source_config.integration_id", 1), problem{"body.source_config.integration_id", "uuid_type"}},
		"repo_url":               {with(git, "source_config.repo_url", 1), problem{"body.source_config.repo_url", "string_type"}},
		"deployment_type":        {with(git, "source_config.deployment_type", "big"), problem{"body.source_config.deployment_type", "enum"}},
		"build_on_push":          {with(git, "source_config.build_on_push", "yes"), problem{"body.source_config.build_on_push", "bool_type"}},
		"custom_url":             {with(image, "source_config.custom_url", 1), problem{"body.source_config.custom_url", "string_type"}},
		"listener_id":            {with(image, "source_config.listener_id", "x"), problem{"body.source_config.listener_id", "uuid_parsing"}},
		"k8s_namespace":          {with(image, "source_config.listener_config", object{"k8s_namespace": 1}), problem{"body.source_config.listener_config.k8s_namespace", "string_type"}},
		"repo_ref":               {with(git, "source_revision_config.repo_ref", []any{}), problem{"body.source_revision_config.repo_ref", "string_type"}},
		"a long repo_ref":        {with(git, "source_revision_config.repo_ref", strings.Repeat("x", 1025)), problem{"body.source_revision_config.repo_ref", "string_too_long"}},
		"a long repo_url":        {with(git, "source_config.repo_url", strings.Repeat("x", 2049)), problem{"body.source_config.repo_url", "string_too_long"}},
		"a long install_command": {with(git, "source_config.install_command", strings.Repeat("x", 8193)), problem{"body.source_config.install_command", "string_too_long"}},
		"a long build_command":   {with(git, "source_config.build_command", strings.Repeat("x", 8193)), problem{"body.source_config.build_command", "string_too_long"}},
		"a long custom_url":      {with(image, "source_config.custom_url", strings.Repeat("x", 2049)), problem{"body.source_config.custom_url", "string_too_long"}},
		"a long path":            {with(git, "source_revision_config.framework_config_path", strings.Repeat("x", 1025)), problem{"body.source_revision_config.framework_config_path", "string_too_long"}},
		"image_uri":              {with(image, "source_revision_config.image_uri", 1), problem{"body.source_revision_config.image_uri", "string_type"}},
		"resource_spec":          {with(image, "source_config.resource_spec", []any{}), problem{"body.source_config.resource_spec", "model_attributes_type"}},
		"a fractional scale":     {spec("min_scale", 1.5), problem{"body.source_config.resource_spec.min_scale", "int_from_float"}},
		"a negative scale":       {spec("max_scale", -1), problem{"body.source_config.resource_spec.max_scale", "greater_than_equal"}},
		"text for memory":        {spec("memory_mb", "512"), problem{"body.source_config.resource_spec.memory_mb", "int_type"}},
		"no CPU":                 {spec("cpu", 0), problem{"body.source_config.resource_spec.cpu", "greater_than"}},
		"CPU in hundredths":      {spec("cpu", 0.25), problem{"body.source_config.resource_spec.cpu", "multiple_of"}},
		"a label":                {spec("labels", object{"a": 1}), problem{"body.source_config.resource_spec.labels.a", "string_type"}},
		"a volume's name":        {spec("volumes", []any{object{"name": "A_B"}}), problem{"body.source_config.resource_spec.volumes.0.name", "string_pattern_mismatch"}},
		"a volume without name":  {spec("volumes", []any{object{}}), problem{"body.source_config.resource_spec.volumes.0.name", "missing"}},
		"a container":            {spec("sidecars", []any{object{"name": "a"}}), problem{"body.source_config.resource_spec.sidecars.0.image", "missing"}},
		"a pull policy":          {spec("init_containers", []any{object{"name": "a", "image": "b", "imagePullPolicy": "Often"}}), problem{"body.source_config.resource_spec.init_containers.0.imagePullPolicy", "enum"}},
		"a restart policy":       {spec("sidecars", []any{object{"name": "a", "image": "b", "restartPolicy": "Never"}}), problem{"body.source_config.resource_spec.sidecars.0.restartPolicy", "enum"}},
		"an environment name":    {spec("sidecars", []any{object{"name": "a", "image": "b", "env": []any{object{"name": "1A"}}}}), problem{"body.source_config.resource_spec.sidecars.0.env.0.name", "string_pattern_mismatch"}},
		"a pull secret":          {spec("image_pull_secrets", []any{object{}}), problem{"body.source_config.resource_spec.image_pull_secrets.0.name", "missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			answer := f.call(t, "POST", "/v2/deployments", c.body)
			if diff := cmp.Diff([]problem{c.want}, problems(t, answer)); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%s", diff, answer.text)
			}
			f.wantNothing(t)
		})
	}
}

func TestAllProblemsAreListedAtOnce(t *testing.T) {
	t.Parallel()
	rule(t, "422: `detail` lists every problem with `loc`, `msg` and `type`.")
	f := setUp(t)
	answer := f.call(t, "POST", "/v2/deployments", object{
		"source": "svn", "source_config": object{"integration_id": "x", "build_on_push": 1, "resource_spec": object{"cpu": "much"}},
		"secrets": []any{object{"name": "A"}, object{"value": "b"}, "C=d"},
	})
	want := []problem{
		{"body.name", "missing"}, {"body.secrets.0.value", "missing"}, {"body.secrets.1.name", "missing"}, {"body.secrets.2", "model_attributes_type"},
		{"body.source", "enum"}, {"body.source_config.build_on_push", "bool_type"}, {"body.source_config.integration_id", "uuid_parsing"},
		{"body.source_config.resource_spec.cpu", "float_type"}, {"body.source_revision_config", "missing"},
	}
	if diff := cmp.Diff(want, problems(t, answer)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	f.wantNothing(t)
}

func TestEveryMissingMemberIsListed(t *testing.T) {
	t.Parallel()
	rule(t, "Required: `name`, `source`, `source_config`, `source_revision_config`, `secrets`; each one that is missing is listed.")
	f := setUp(t)
	want := []problem{
		{"body.name", "missing"}, {"body.secrets", "missing"}, {"body.source", "missing"}, {"body.source_config", "missing"},
		{"body.source_revision_config", "missing"},
	}
	if diff := cmp.Diff(want, problems(t, f.call(t, "POST", "/v2/deployments", object{}))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	f.wantNothing(t)
}

// TestAPatchOfTheWrongShapeIsRefused also checks that nothing is changed.
func TestAPatchOfTheWrongShapeIsRefused(t *testing.T) {
	t.Parallel()
	rule(t, "JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for name, c := range map[string]struct {
		body any
		want problem
	}{
		"no body":          {nil, problem{"body", "missing"}},
		"not JSON":         {`{`, problem{"body.1", "json_invalid"}},
		"null":             {`null`, problem{"body", "model_attributes_type"}},
		"an array":         {`[]`, problem{"body", "model_attributes_type"}},
		"name":             {object{"name": 1}, problem{"body.name", "string_type"}},
		"source":           {object{"source": "svn"}, problem{"body.source", "enum"}},
		"source_config":    {object{"source_config": []any{}}, problem{"body.source_config", "model_attributes_type"}},
		"a member of it":   {object{"source_config": object{"build_on_push": "on"}}, problem{"body.source_config.build_on_push", "bool_type"}},
		"repo_ref":         {object{"source_revision_config": object{"repo_ref": true}}, problem{"body.source_revision_config.repo_ref", "string_type"}},
		"secrets":          {object{"secrets": object{}}, problem{"body.secrets", "list_type"}},
		"a secret":         {object{"secrets": []any{object{"name": "A"}}}, problem{"body.secrets.0.value", "missing"}},
		"a secret of null": {object{"secrets": []any{nil}}, problem{"body.secrets.0", "model_attributes_type"}},
	} {
		answer := f.call(t, "PATCH", path, c.body)
		if diff := cmp.Diff([]problem{c.want}, problems(t, answer)); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", name, diff)
		}
	}
	f.wantUnchanged(t, path, created)
}

// wantUnchanged checks that a deployment has not changed, and has no more revisions.
func (f *fixture) wantUnchanged(t *testing.T, path string, before response) {
	t.Helper()
	if diff := cmp.Diff(before.body, f.call(t, "GET", path, nil).body); diff != "" {
		t.Errorf("the deployment was changed (-before +after):\n%s", diff)
	}
	if got := f.call(t, "GET", path+"/revisions", nil).member("resources"); len(got.([]any)) != 1 {
		t.Errorf("revisions were made: %v", got)
	}
}

func TestParametersOfTheWrongShapeAreRefused(t *testing.T) {
	t.Parallel()
	rule(t, "Ids are uuids in any case of letters; others are a 422.")
	rule(t, "GET /v2/deployments and …/revisions: `limit` 1 to 100 (20), `offset`; `{resources, offset}`, newest first.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for _, list := range []string{"/v2/deployments", path + "/revisions"} {
		for query, want := range map[string]problem{
			"limit=0":           {"query.limit", "greater_than_equal"},
			"limit=101":         {"query.limit", "less_than_equal"},
			"limit=ten":         {"query.limit", "int_parsing"},
			"limit=":            {"query.limit", "int_parsing"},
			"offset=-1":         {"query.offset", "greater_than_equal"},
			"offset=2147483648": {"query.offset", "less_than_equal"},
			"offset=1e3":        {"query.offset", "int_parsing"},
		} {
			if diff := cmp.Diff([]problem{want}, problems(t, f.call(t, "GET", list+"?"+query, nil))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	}
	for _, bad := range []string{"1", "weather", unknownID + "0", "{" + unknownID + "}", "urn:uuid:" + unknownID, strings.ReplaceAll(unknownID, "-", "_"), "%00"} {
		for _, method := range []string{"GET", "DELETE"} {
			if diff := cmp.Diff([]problem{{"path.deployment_id", "uuid_parsing"}}, problems(t, f.call(t, method, "/v2/deployments/"+bad, nil))); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", method, bad, diff)
			}
		}
		if diff := cmp.Diff([]problem{{"path.revision_id", "uuid_parsing"}}, problems(t, f.call(t, "GET", path+"/revisions/"+bad, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", bad, diff)
		}
	}
	f.wantUnchanged(t, path, created)
}

// TestIdsMayBeInCapitals asks for a deployment with an id in capitals, as some clients write
// UUIDs.
func TestIdsMayBeInCapitals(t *testing.T) {
	t.Parallel()
	rule(t, "Ids are uuids in any case of letters; others are a 422.")
	f := setUp(t)
	_, created := f.create(t, fromGit("weather"))
	answer := f.call(t, "GET", "/v2/deployments/"+strings.ToUpper(created.id("id")), nil)
	wantStatus(t, answer, http.StatusOK)
	if answer.id("id") != created.id("id") {
		t.Errorf("got %s", answer.text)
	}
	id := strings.ToUpper(created.id("id"))
	if found := f.call(t, "GET", "/v2/deployments?deployment_ids="+id, nil); !strings.Contains(string(found.text), created.id("id")) {
		t.Errorf("got %s", found.text)
	}
	wantStatus(t, f.call(t, "GET", "/v2/deployment-logs?deployment_id="+id+"&revision_id="+strings.ToUpper(created.id("latest_revision_id")), nil), http.StatusOK)
	wantStatus(t, f.call(t, "DELETE", "/v2/deployments?deployment_ids="+id, nil), http.StatusOK)
}

func TestABodyMustBeJSON(t *testing.T) {
	t.Parallel()
	rule(t, "JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for method, target := range map[string]string{"POST": "/v2/deployments", "PATCH": path} {
		headers := f.own.headers()
		headers["Content-Type"] = "text/plain"
		answer := f.send(t, method, target, fromGit("another"), headers)
		wantDetail(t, answer, http.StatusUnsupportedMediaType, "The body must be JSON: send Content-Type: application/json.")
	}
	f.wantUnchanged(t, path, created)
}

func TestABodyMayBeTenMegabytes(t *testing.T) {
	t.Parallel()
	rule(t, "JSON that is malformed, that is not UTF-8 or that other parsers cannot read is a 422 (`json_invalid`), a body over 10 MB a 413, another Content-Type a 415, another method a 405 with `Allow`.")
	check.Large(t)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for method, target := range map[string]string{"POST": "/v2/deployments", "PATCH": path} {
		body := `{"name":"` + strings.Repeat(" ", 10<<20) + `"}`
		wantDetail(t, f.call(t, method, target, body), http.StatusRequestEntityTooLarge, "The body is larger than 10485760 bytes.")
	}
	f.wantUnchanged(t, path, created)
	f.create(t, with(fromGit("large"), "unknown", strings.Repeat(" ", 9<<20)))
}

// TestARequestKeepsItsId sends an id that the client has chosen.
func TestARequestKeepsItsId(t *testing.T) {
	t.Parallel()
	rule(t, "Each response carries X-Request-Id; one that the client has given is kept.")
	f := setUp(t)
	answer := f.send(t, "GET", "/v2/deployments", nil, map[string]string{"X-Request-Id": "mine-1", auth.HeaderKey: "guess"})
	if got := answer.Header.Get("X-Request-Id"); got != "mine-1" || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("got id %q and status %d, want mine-1 and 401", got, answer.StatusCode)
	}
}
