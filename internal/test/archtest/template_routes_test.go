package archtest_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

// operation is the part of an OpenAPI document's operation that matters for the template.
type operation struct {
	OperationID string `yaml:"operationId"`
	Tags        []string
	// Security is nil unless the operation declares its own security.
	Security  *[]any
	Responses map[string]struct {
		Ref     string `yaml:"$ref"`
		Headers map[string]any
		Content map[string]any
	}
}

// isOpen reports whether every client may call the operation.
func (o operation) isOpen() bool { return o.Security != nil && len(*o.Security) == 0 }

// place is a path of the API, with its expected properties.
type place struct {
	function, authorizer string
	streaming            bool
	// operations are the document's operations, by method.
	operations map[string]string
}

// interfaces are the documents, with the path at which each is served and the functions that
// serve it.
var interfaces = []struct {
	document []byte
	bases    []string
	function func(o operation, streaming bool) string
}{
	{openapi.ControlPlane, []string{"", "/api-host"}, func(o operation, streaming bool) string {
		if streaming {
			return "Runstream"
		}
		if slices.Contains(o.Tags, "AuthService") {
			return "Authservice"
		}
		if slices.Contains(o.Tags, "Listeners") {
			return "Listeners"
		}
		if slices.Contains(o.Tags, "Integrations") {
			return "Integrations"
		}
		if slices.Contains(o.Tags, "PushHooks") {
			return "Githubhook"
		}
		if slices.Contains(o.Tags, "Workspaces") {
			return "Workspaces"
		}
		return "Deployments"
	}},
	{openapi.AgentServer, []string{"/d/{deployment_id}"}, func(o operation, streaming bool) string {
		switch {
		case streaming:
			return "Runstream"
		case slices.Contains(o.Tags, "Assistants"), slices.Contains(o.Tags, "Store"), slices.Contains(o.Tags, "Crons"):
			return "Assistants"
		case o.OperationID == "GetInfo": // it announces what this function serves
			return "Assistants"
		case slices.Contains(o.Tags, "Runs"):
			return "Runs"
		default:
			return "Threads"
		}
	}},
}

// placeOf returns the place of a request, given by a method and a path with values or with the
// variables of the documents.
func placeOf(t *testing.T, all map[string]place, method, path string) (place, bool) {
	t.Helper()
	// The documents' paths are a tree like the routes of an API, so the closest match is found
	// in the same way.
	documents, alone := []template.Route{}, []template.Route{}
	for at := range all {
		if own, rest, found := strings.Cut(at, " "); found {
			alone = append(alone, template.Route{Method: own, Path: rest})
		} else {
			documents = append(documents, template.Route{Method: "ANY", Path: at})
		}
	}
	for _, routes := range [][]template.Route{alone, documents} {
		router, err := template.NewRouter(routes, nil)
		check.Must(t, err)
		if route, _, there := router.Find(method, path); there {
			if route.Method == "ANY" {
				return all[route.Path], true
			}
			return all[route.Method+" "+route.Path], true
		}
	}
	return place{}, false
}

// places returns all paths that the documents name, and the documents themselves. An operation
// that every client may call, on a path with other operations that need credentials, has a
// place by its method and path.
func places(t *testing.T) map[string]place {
	t.Helper()
	// What no document names belongs to the own applications of repositories.
	own := place{function: "Agentroutes", authorizer: "Credentials", streaming: true, operations: map[string]string{http.MethodGet: "an own route"}}
	all := map[string]place{"/d/{deployment_id}": own, "/d/{deployment_id}/{proxy+}": own}
	for _, i := range interfaces {
		var document struct {
			Paths      map[string]map[string]yaml.Node
			Components struct {
				Responses map[string]struct{ Headers map[string]any }
			}
		}
		check.Must(t, yaml.Unmarshal(i.document, &document))
		for _, base := range i.bases {
			read := map[string]string{http.MethodGet: ""}
			all[base+"/openapi.json"] = place{function: i.function(operation{}, false), operations: read}
			all[base+"/docs"] = place{function: "Docs", operations: read}
			for path, members := range document.Paths {
				operations, open := map[string]operation{}, 0
				for method, node := range members {
					if method == "parameters" || strings.HasPrefix(method, "x-") {
						continue
					}
					var o operation
					check.Must(t, node.Decode(&o))
					if operations[method] = o; o.isOpen() {
						open++
					}
				}
				for method, o := range operations {
					good := o.Responses["200"]
					headers := good.Headers
					if name, ok := strings.CutPrefix(good.Ref, "#/components/responses/"); ok {
						headers = document.Components.Responses[name].Headers
					}
					// An operation that waits names the place where its answer can be
					// continued, as most streams do.
					_, streaming := headers["Location"]
					// A socket shares the path of a stream.
					_, isSocket := o.Responses["101"]
					// The call of a tool takes as long as its run.
					calls := slices.Contains(o.Tags, "Tools")
					streaming = streaming || isSocket || calls || good.Content["text/event-stream"] != nil
					wanted := place{function: i.function(o, streaming), authorizer: "Credentials", streaming: streaming, operations: map[string]string{}}
					at := base + path
					if o.isOpen() {
						wanted.authorizer = ""
						if open < len(operations) {
							at = strings.ToUpper(method) + " " + at
						}
					}
					if before, there := all[at]; there {
						if before.function != wanted.function || before.authorizer != wanted.authorizer {
							t.Errorf("%s: its methods are not of one kind, which a route for all of them needs", at)
						}
						wanted.operations = before.operations
					}
					wanted.operations[strings.ToUpper(method)] = o.OperationID
					all[at] = wanted
				}
			}
		}
	}
	return all
}

// TestRoutesAreThoseOfTheDocuments checks to which function API Gateway sends each operation
// of the documents, and that no route is unused.
func TestRoutesAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	eachStack(t, func(t *testing.T, s *template.Stack) {
		router, err := template.NewRouter(s.Routes, s.API.Authorizers)
		check.Must(t, err)
		used := map[string]bool{}
		for at, want := range places(t) {
			_, path, alone := strings.Cut(at, " ")
			if !alone {
				path = at
			}
			for method := range want.operations {
				route, _, there := router.Find(method, path)
				used[route.Method+" "+route.Path], used[route.Path] = true, true
				// The functions on managed instances are the same programs.
				function := strings.TrimPrefix(route.Function, "Managed")
				if !there || function != want.function || route.Authorizer != want.authorizer || route.Streaming != want.streaming {
					t.Errorf("%s %s: got %+v, want function %s, authorizer %q, streaming %t",
						method, path, route, want.function, want.authorizer, want.streaming)
				}
				timeout := 29 * time.Second
				if want.streaming {
					timeout = 15 * time.Minute
				}
				if route.Timeout != timeout || s.Functions[route.Function].Timeout < timeout {
					t.Errorf("%s: API Gateway waits for %s, want %s; the function has %s",
						path, route.Timeout, timeout, s.Functions[route.Function].Timeout)
				}
			}
		}
		for _, route := range s.Routes {
			// All methods of a path have a route where single ones have another.
			if !used[route.Method+" "+route.Path] && (route.Method != "ANY" || !used[route.Path]) {
				t.Errorf("%s %s has no operation of a document", route.Method, route.Path)
			}
		}
	})
}

func TestAuthorizers(t *testing.T) {
	t.Parallel()
	eachStack(t, func(t *testing.T, s *template.Stack) {
		const function = "arn:aws:lambda:us-east-1:000000000000:function:Authorizer:live"
		credentials := s.API.Authorizers["Credentials"]
		if s.API.DefaultAuthorizer != "Credentials" || len(s.API.Authorizers) != 1 || credentials.Function != function {
			t.Errorf("got %+v", s.API)
		}
		if len(credentials.Headers)+len(credentials.QueryStrings)+len(credentials.Context) > 0 || credentials.TTL != 0 {
			t.Errorf("callers have a key, a token, or credentials of a repository, so none can be asked for, nor an answer be kept; got %+v", credentials)
		}
	})
}

// stranger is a key of one workspace.
type stranger struct{}

func (stranger) Key(*http.Request) (workspace.Principal, error) {
	return workspace.Principal{Workspace: "a"}, nil
}

// gatewayStatus are the types of gateway responses and their status; 0 keeps what API Gateway
// found.
var gatewayStatus = map[string]int{
	"DEFAULT_4XX": 0, "DEFAULT_5XX": 500, "BAD_REQUEST_BODY": 400, "BAD_REQUEST_PARAMETERS": 400, "UNAUTHORIZED": 401, "ACCESS_DENIED": 403,
	"WAF_FILTERED": 403, "MISSING_AUTHENTICATION_TOKEN": 404, "INVALID_SIGNATURE": 404, "EXPIRED_TOKEN": 404, "RESOURCE_NOT_FOUND": 404,
	"REQUEST_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415, "THROTTLED": 429, "QUOTA_EXCEEDED": 429, "AUTHORIZER_FAILURE": 503,
	"AUTHORIZER_CONFIGURATION_ERROR": 503, "API_CONFIGURATION_ERROR": 500, "INTEGRATION_FAILURE": 503, "INTEGRATION_TIMEOUT": 504,
}

var contextVariable = regexp.MustCompile(`\$context\.[A-Za-z.]+`)

func TestGatewayAnswersAsTheMuxDoes(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	check.Must(t, err)
	r.Header.Set(auth.HeaderTenant, "b")
	_, forbidden := auth.Tenant(stranger{}, r)
	details := map[string]string{
		"ACCESS_DENIED": forbidden.Error(), "MISSING_AUTHENTICATION_TOKEN": "Not Found", "DEFAULT_5XX": "Internal server error (request VALUE).",
	}
	retry := map[string]bool{"THROTTLED": true, "QUOTA_EXCEEDED": true, "INTEGRATION_FAILURE": true, "AUTHORIZER_FAILURE": true, "AUTHORIZER_CONFIGURATION_ERROR": true}

	responses := stack(t, nil).API.Responses
	if len(responses) != len(gatewayStatus) {
		t.Errorf("there are %d gateway responses, want %d", len(responses), len(gatewayStatus))
	}
	for kind, response := range responses {
		if want, known := gatewayStatus[kind]; !known || response.Status != want {
			t.Errorf("%s has status %d, want %d", kind, response.Status, want)
		}
		// A messageString already contains its quotes.
		text := strings.ReplaceAll(response.Templates["application/json"], "$context.error.messageString", `"VALUE"`)
		text = contextVariable.ReplaceAllString(text, "VALUE")
		var body map[string]string
		if err := json.Unmarshal([]byte(text), &body); err != nil || len(body) != 1 || body["detail"] == "" || len(response.Templates) != 1 {
			t.Errorf("%s is answered %s, which is no error of ours (%v)", kind, text, err)
		}
		if want := details[kind]; want != "" && body["detail"] != want {
			t.Errorf("%s is answered %q, want %q", kind, body["detail"], want)
		}
		if response.Headers["Access-Control-Allow-Origin"] != "'*'" {
			t.Errorf("%s cannot be read by pages of other origins", kind)
		}
		if response.Headers["X-Request-Id"] != "context.requestId" {
			t.Errorf("%s says no request id", kind)
		}
		if (response.Headers["WWW-Authenticate"] == "'Bearer'") != (kind == "UNAUTHORIZED") || (response.Headers["Retry-After"] != "") != retry[kind] {
			t.Errorf("%s has headers %v", kind, response.Headers)
		}
		if seconds := strings.Trim(response.Headers["Retry-After"], "'"); seconds != "" {
			if _, err := strconv.Atoi(seconds); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestBodiesPassUnharmed(t *testing.T) {
	t.Parallel()
	types := stack(t, nil).API.BinaryMediaTypes
	if !slices.Contains(types, "application/octet-stream") {
		t.Error("bytes would be taken for text")
	}
	for _, mediaType := range types {
		if strings.Contains(mediaType, "*") || strings.Contains(mediaType, "json") || strings.HasPrefix(mediaType, "text/") {
			t.Errorf("%s: JSON and event streams are text", mediaType)
		}
	}
}

// TestTheAccessLogHoldsNoSecrets checks the log line of each request: it is JSON, and contains
// nothing that a client chose freely.
func TestTheAccessLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	format := ""
	eachMap(stack(t, nil).Resources["Api"].Properties["AccessLogSetting"], func(m map[string]any) { format, _ = m["Format"].(string) })
	var line map[string]any
	if err := json.Unmarshal([]byte(contextVariable.ReplaceAllString(format, "1")), &line); err != nil {
		t.Errorf("%s: %v", format, err)
	}
	allowed := []string{
		"requestTime", "requestId", "identity.sourceIp", "httpMethod", "resourcePath", "status", "responseLength", "responseLatency", "integrationLatency",
		"authorizer.workspace", "error.responseType",
	}
	for _, name := range contextVariable.FindAllString(format, -1) {
		if !slices.Contains(allowed, strings.TrimPrefix(name, "$context.")) {
			t.Errorf("the access log has %s", name)
		}
	}
}
