package apigateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/apigateway"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/fixtures"
	"github.com/slipway-run/slipway/internal/test/template"
)

const patience = 30 * time.Second

// api is a gateway with its functions.
type api struct {
	*httptest.Server
	functions *lambda.Platform
	clock     fixtures.RunningClock
}

// route returns a route that Echo serves.
func route(method, path string) template.Route {
	return template.Route{Function: "Echo", Method: method, Path: path, Timeout: patience}
}

// open starts the API of all tests.
func open(t *testing.T) *api {
	t.Helper()
	program, err := os.Executable()
	check.Must(t, err)
	a := &api{}
	var functions []lambda.Function
	for _, name := range []string{"Echo", "Stream", "Authorizer"} {
		functions = append(functions, lambda.Function{Name: name, Bootstrap: program, Timeout: patience})
	}
	log := slog.New(slog.DiscardHandler)
	a.functions, err = lambda.New(lambda.Config{Functions: functions, Processes: filepath.Join(t.TempDir(), "processes"), Log: log})
	check.Must(t, err)
	guarded, keyed := route("ANY", "/guarded/{id}"), route("GET", "/keyed")
	far := route("GET", "/far")
	guarded.Authorizer, keyed.Authorizer, far.Authorizer = "Key", "Any", "Far"
	few := route("GET", "/few/{id}")
	few.Authorizer = "Key"
	slow := route("GET", "/slow")
	slow.Timeout = 300 * time.Millisecond
	gateway, err := apigateway.New(apigateway.Config{
		API: template.API{
			Stage: "v", BinaryMediaTypes: []string{"application/octet-stream", "image/*"},
			Authorizers: map[string]template.Authorizer{
				"Key": {Name: "Key", Function: a.functions.ARN("Authorizer"), Headers: []string{"X-Api-Key", "X-Tenant-Id"}, TTL: time.Minute},
				"Any": {Name: "Any", Function: a.functions.ARN("Authorizer")},
				"Far": {Name: "Far", Function: a.functions.ARN("Nowhere")},
			},
			Responses: map[string]template.GatewayResponse{
				"MISSING_AUTHENTICATION_TOKEN": {
					Status: 404, Templates: map[string]string{"application/json": `{"detail": "Not Found"}`},
					Headers: map[string]string{"X-Request-Id": "context.requestId", "Retry-After": "'5'"},
				},
				"THROTTLED": {
					Status: 429, Templates: map[string]string{"application/json": `{"detail": "slow"}`},
					Headers: map[string]string{"Access-Control-Allow-Origin": "'*'", "Retry-After": "'2'"},
				},
				"AUTHORIZER_CONFIGURATION_ERROR": {Status: 503, Templates: map[string]string{"application/json": `{"detail": "no authorizer"}`}},
				"DEFAULT_4XX":                    {Templates: map[string]string{"application/json": `{"detail": $context.error.messageString}`}},
				"DEFAULT_5XX":                    {Templates: map[string]string{"text/plain": `request $context.requestId$context.unknown.`}},
			},
			Throttles: []template.Throttle{
				{Path: "/*", Method: "*", Rate: 1000, Burst: 1000}, {Path: "/few", Method: "GET", Rate: 0.01, Burst: 3},
				{Path: "/few/{id}", Method: "GET", Rate: 0.01, Burst: 1},
			},
		},
		Routes: []template.Route{
			route("GET", "/"), route("ANY", "/things"), route("GET", "/things/{id}"), route("POST", "/things/new"), route("GET", "/things/{id}/parts/{part}"),
			route("ANY", "/rest/{proxy+}"), guarded, keyed, far, slow,
			route("GET", "/few"), route("POST", "/few"), few,
			{Function: "Stream", Method: "POST", Path: "/stream", Streaming: true, Timeout: patience},
		},
		Functions: a.functions, Region: "us-east-1", Account: "000000000000", Log: log,
		Now: a.clock.Now,
	})
	check.Must(t, err)
	a.Server = httptest.NewServer(gateway)
	t.Cleanup(func() {
		a.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		check.Must(t, a.functions.Close(ctx))
	})
	return a
}

// do sends a request.
func (a *api) do(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))
	check.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := a.Client().Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check.Must(t, err)
	return response, string(text)
}

// event sends a request and returns the event that the function was called with.
func (a *api) event(t *testing.T, method, path, body string, headers ...string) map[string]any {
	t.Helper()
	response, text := a.do(t, method, path, body, headers...)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	var event map[string]any
	check.Must(t, json.Unmarshal([]byte(text), &event))
	return event
}

// compact writes a part of an event.
func compact(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	check.Must(t, err)
	return string(text)
}

func TestRouting(t *testing.T) {
	t.Parallel()
	a := open(t)
	for _, c := range []struct{ method, path, resource, parameters string }{
		{"GET", "/", "/", "null"},
		{"PATCH", "/things", "/things", "null"},
		{"GET", "/things/", "/things", "null"},
		{"GET", "/things/7", "/things/{id}", `{"id":"7"}`},
		{"GET", "/things/a%2Fb%20c", "/things/{id}", `{"id":"a/b c"}`},
		{"POST", "/things/new", "/things/new", "null"},
		{"GET", "/things/new/parts/2", "/things/{id}/parts/{part}", `{"id":"new","part":"2"}`},
		{"DELETE", "/rest/a/b", "/rest/{proxy+}", `{"proxy":"a/b"}`},
	} {
		event := a.event(t, c.method, c.path, "")
		if event["resource"] != c.resource || compact(t, event["pathParameters"]) != c.parameters || event["path"] != c.path || event["httpMethod"] != c.method {
			t.Errorf("%s %s: got %v %v with %v of %v", c.method, c.path, event["httpMethod"], event["path"], event["pathParameters"], event["resource"])
		}
	}
	// An existing resource without this method hides other resources that would accept the
	// request.
	for _, c := range []struct{ method, path string }{{"GET", "/things/new"}, {"POST", "/things/7"}, {"GET", "/rest"}, {"GET", "/nothing"}, {"GET", "/things/7/parts"}} {
		response, text := a.do(t, c.method, c.path, "")
		if response.StatusCode != http.StatusNotFound || text != `{"detail": "Not Found"}` || response.Header.Get("X-Request-Id") == "" || response.Header.Get("Retry-After") != "5" {
			t.Errorf("%s %s: got %d %s %v", c.method, c.path, response.StatusCode, text, response.Header)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	streaming := template.Route{Function: "Stream", Method: "POST", Path: "/things/stream", Streaming: true}
	gateway, err := apigateway.New(apigateway.Config{Routes: []template.Route{route("ANY", "/things/{id}"), streaming}})
	check.Must(t, err)
	for target, want := range map[string]bool{
		"POST /things/stream": true, "POST /things/stream/": true, "GET /things/stream": false, "POST /things/7": false, "POST /nothing": false,
	} {
		method, path, _ := strings.Cut(target, " ")
		if got := gateway.Streams(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: got %v", target, got)
		}
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	guarded := route("GET", "/a")
	guarded.Authorizer = "Nobody"
	for name, routes := range map[string][]template.Route{
		"the same twice":         {route("GET", "/a/{b}"), route("GET", "/a/{b}")},
		"a variable's two names": {route("GET", "/a/{b}"), route("GET", "/a/{c}/d")},
		"no such authorizer":     {guarded},
	} {
		if _, err := apigateway.New(apigateway.Config{Routes: routes}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	a := open(t)
	event := a.event(t, "POST", "/things?q=a%2Bb&q=c+d&flag&=x", "hello", "X-Two", "a", "X-Two", "b", "Content-Type", "text/plain", "User-Agent", "me", "X-Forwarded-For", "10.0.0.1")
	for name, want := range map[string]string{
		"queryStringParameters":           `{"flag":"","q":"c d"}`,
		"multiValueQueryStringParameters": `{"flag":[""],"q":["a+b","c d"]}`,
		"body":                            `"hello"`,
		"isBase64Encoded":                 `false`,
		"stageVariables":                  `null`,
	} {
		if got := compact(t, event[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	single, many := event["headers"].(map[string]any), event["multiValueHeaders"].(map[string]any)
	host := strings.TrimPrefix(a.URL, "http://")
	_, port, err := net.SplitHostPort(host)
	check.Must(t, err)
	for name, want := range map[string]string{
		"X-Two": `["a","b"]`, "Host": `["` + host + `"]`, "X-Forwarded-For": `["10.0.0.1, 127.0.0.1"]`, "X-Forwarded-Port": `["` + port + `"]`,
		"X-Forwarded-Proto": `["http"]`, "Content-Length": "null", "Connection": "null",
	} {
		if got := compact(t, many[name]); got != want {
			t.Errorf("header %s is %s, want %s", name, got, want)
		}
	}
	if single["X-Two"] != "b" {
		t.Errorf("X-Two is %v, want the last value", single["X-Two"])
	}
	c := event["requestContext"].(map[string]any)
	for name, want := range map[string]any{
		"httpMethod": "POST", "path": "/things", "resourcePath": "/things", "stage": "v", "domainName": host, "protocol": "HTTP/1.1", "accountId": "000000000000",
	} {
		if c[name] != want {
			t.Errorf("requestContext.%s is %v, want %v", name, c[name], want)
		}
	}
	if who := c["identity"].(map[string]any); who["sourceIp"] != "127.0.0.1" || who["userAgent"] != "me" || who["user"] != nil {
		t.Errorf("identity is %v", who)
	}
	if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", c["requestTime"].(string)); err != nil {
		t.Error(err)
	}
	again := a.event(t, "GET", "/things", "")["requestContext"].(map[string]any)
	if again["requestId"] == c["requestId"] || c["requestId"] == "" {
		t.Errorf("two requests have the ids %v and %v", c["requestId"], again["requestId"])
	}
	if got := a.event(t, "GET", "/things", "")["body"]; got != nil {
		t.Errorf("no body is %v, want null", got)
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	a := open(t)
	body := string([]byte{0, 1, 0xfe, 0xff})
	event := a.event(t, "POST", "/things", body, "Content-Type", "application/octet-stream; a=b")
	if event["isBase64Encoded"] != true || event["body"] != "AAH+/w==" {
		t.Errorf("got %v, base64 %v", event["body"], event["isBase64Encoded"])
	}
	for _, c := range []struct{ contentType, accept, want string }{
		{"image/png", "", "\x00\x01\xff"}, {"text/plain", "image/webp,*/*", "\x00\x01\xff"}, {"text/plain", "text/plain", "AAH/"},
	} {
		if _, got := a.do(t, "GET", "/things", "", "Do", "binary", "Answer", c.contentType, "Accept", c.accept); got != c.want {
			t.Errorf("%s for %q: got %q, want %q", c.contentType, c.accept, got, c.want)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	a := open(t)
	response, text := a.do(t, "GET", "/things", "", "Do", "headers")
	header := response.Header
	if response.StatusCode != http.StatusAccepted || text != "x" || header.Get("Content-Type") != "text/plain" || header.Get("X-One") != "1" ||
		strings.Join(header["X-Many"], ",") != "a,b" || strings.Join(header["Set-Cookie"], ",") != "a=1,b=2" ||
		header.Get("X-Amzn-Remapped-Date") != "never" || header.Get("Date") == "never" || header.Get("X-Request-Id") != "mine" {
		t.Errorf("got %d %q %v", response.StatusCode, text, header)
	}
	if response, text := a.do(t, "GET", "/things", "", "Do", "bare"); response.StatusCode != http.StatusNoContent || text != "" {
		t.Errorf("bare: got %d %q", response.StatusCode, text)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	a := open(t)
	for _, c := range []struct {
		method, path, do string
		status           int
	}{
		{"GET", "/things", "fail", 502}, {"GET", "/things", "exit", 502}, {"GET", "/things", "malformed", 502},
		{"GET", "/things", "no status", 502}, {"GET", "/things", "long", 502}, {"GET", "/slow", "wait", 504},
		{"POST", "/stream", "fail", 502}, {"POST", "/stream", "buffer", 502},
	} {
		response, text := a.do(t, c.method, c.path, "", "Do", c.do)
		want := "request " + response.Header.Get("X-Amzn-RequestId") + "."
		if response.StatusCode != c.status || text != want || response.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s: got %d %q, want %d %q", c.do, response.StatusCode, text, c.status, want)
		}
	}
	for _, size := range []int{10<<20 + 1, 7 << 20} {
		response, text := a.do(t, "POST", "/things", strings.Repeat("a", size))
		if response.StatusCode != http.StatusRequestEntityTooLarge || text != `{"detail": "Request Too Long"}` {
			t.Errorf("%d bytes: got %d %s", size, response.StatusCode, text)
		}
	}
	a.event(t, "POST", "/things", strings.Repeat("a", 2<<20))
}

func TestAuthorizer(t *testing.T) {
	t.Parallel()
	a := open(t)
	for key, c := range map[string]struct {
		status int
		text   string
	}{
		"":          {401, `{"detail": "Unauthorized"}`},
		"wrong":     {401, `{"detail": "Unauthorized"}`},
		"denied":    {403, `{"detail": "User is not authorized to access this resource with an explicit deny"}`},
		"elsewhere": {403, `{"detail": "User is not authorized to access this resource"}`},
		"stage":     {200, ""},
		"broken":    {500, "request "},
		"shapeless": {503, `{"detail": "no authorizer"}`},
		"nested":    {503, `{"detail": "no authorizer"}`},
	} {
		response, text := a.do(t, "GET", "/guarded/7", "", "X-Api-Key", key, "X-Tenant-Id", "t")
		if response.StatusCode != c.status || !strings.HasPrefix(text, c.text) {
			t.Errorf("%q: got %d %s, want %d", key, response.StatusCode, text, c.status)
		}
	}
	if response, text := a.do(t, "GET", "/far", ""); response.StatusCode != http.StatusServiceUnavailable || text != `{"detail": "no authorizer"}` {
		t.Errorf("an authorizer that cannot be called: got %d %s", response.StatusCode, text)
	}
	if pids := a.functions.Workers("Echo"); len(pids) > 1 {
		t.Errorf("the function has the processes %v", pids)
	}
	said := a.event(t, "GET", "/guarded/7", "", "X-Api-Key", "k", "X-Tenant-Id", "t")["requestContext"].(map[string]any)["authorizer"].(map[string]any)
	if said["principalId"] != "me" || said["workspace"] != "w" || said["admin"] != "true" {
		t.Errorf("the function is told %v", said)
	}
	var asked map[string]any
	check.Must(t, json.Unmarshal([]byte(said["event"].(string)), &asked))
	if asked["type"] != "REQUEST" || asked["methodArn"] != "arn:aws:execute-api:us-east-1:000000000000:local/v/GET/guarded/7" ||
		asked["resource"] != "/guarded/{id}" || compact(t, asked["pathParameters"]) != `{"id":"7"}` || asked["body"] != nil {
		t.Errorf("the authorizer is asked %v", asked)
	}
}

func TestAuthorizersAnswerIsRemembered(t *testing.T) {
	t.Parallel()
	a := open(t)
	asked := func(path string, headers ...string) string {
		said := a.event(t, "GET", path, "", headers...)["requestContext"].(map[string]any)["authorizer"].(map[string]any)
		return said["calls"].(string)
	}
	key := []string{"X-Api-Key", "k", "X-Tenant-Id", "t"}
	first := asked("/guarded/1", key...)
	if second := asked("/guarded/2", key...); second != first {
		t.Errorf("it was asked again for the same caller")
	}
	if other := asked("/guarded/1", "X-Api-Key", "k", "X-Tenant-Id", "u"); other == first {
		t.Errorf("it was not asked for another caller")
	}
	if open := asked("/keyed"); open == asked("/keyed") {
		t.Errorf("it was not asked again without a cache")
	}
	a.clock.Pass(30 * time.Second)
	if late := asked("/guarded/1", key...); late != first {
		t.Errorf("it was asked again within a minute")
	}
	a.clock.Pass(31 * time.Second)
	if later := asked("/guarded/1", key...); later == first {
		t.Errorf("it was not asked again after a minute")
	}
}

// waitingRoom makes an address at which functions wait: arrival waits for a function, and
// returns a function that lets it pass.
func waitingRoom(t *testing.T) (address string, arrival func() (pass func())) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), func() func() {
		check.Must(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
		conn, err := listener.Accept()
		check.Must(t, err)
		return func() { conn.Close() }
	}
}

// begin sends a request to the stream.
func (a *api) begin(ctx context.Context, t *testing.T, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+"/stream", bytes.NewReader(nil))
	check.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := a.Client().Do(request)
	check.Must(t, err)
	return response
}

func TestStreamComesAsItIsMade(t *testing.T) {
	t.Parallel()
	a := open(t)
	gate, arrival := waitingRoom(t)
	response := a.begin(t.Context(), t, "Gate", gate)
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated || response.Header.Get("Content-Type") != "text/event-stream" || strings.Join(response.Header["X-Many"], ",") != "a,b" ||
		response.Header.Get("Set-Cookie") != "a=1" || response.Header.Get("Content-Length") != "" {
		t.Errorf("got %d %v", response.StatusCode, response.Header)
	}
	lines := bufio.NewReader(response.Body)
	for _, want := range []string{"part 1\n", "part 2\n", "part 3\n"} {
		arrival()()
		if line, err := lines.ReadString('\n'); err != nil || line != want {
			t.Fatalf("got %q, %v; want %q", line, err, want)
		}
	}
	if line, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("got %q, %v; want the end", line, err)
	}
}

func TestStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	a := open(t)
	response := a.begin(t.Context(), t, "Do", "break")
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil || string(text) != "part 1\npart 2\n" {
		t.Errorf("got %q, %v; want two parts and an error", text, err)
	}
}

func TestFunctionGoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	a := open(t)
	gate, arrival := waitingRoom(t)
	ctx, leave := context.WithCancel(t.Context())
	response := a.begin(ctx, t, "Gate", gate)
	arrival()()
	leave()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the stream goes on")
	}
	response.Body.Close()
	for range 2 {
		arrival()() // the function still makes its other parts
	}
}
