package main

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/apigateway"
	"github.com/slipway-run/slipway/internal/test/template"
)

// echo starts a server that answers with its name and with the request that reached it.
func echo(t *testing.T, name string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("X-Seen", strings.Join([]string{r.Method, r.Host, r.RequestURI, r.Header.Get("X-Api-Key"), r.Header.Get("Accept-Encoding")}, " "))
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, name+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return server
}

// newDoor starts a door of the project's template before two servers.
func newDoor(t *testing.T, streaming, buffered string) *httptest.Server {
	t.Helper()
	read, err := template.Load("../../../template.yaml")
	check.Must(t, err)
	stack, err := read.Resolve(template.Values{StackName: stackName, Region: region, Account: account})
	check.Must(t, err)
	gateway, err := apigateway.New(apigateway.Config{API: stack.API, Routes: stack.Routes})
	check.Must(t, err)
	proxies := map[string]http.Handler{}
	for _, target := range []string{streaming, buffered} {
		proxies[target], err = newProxy(target, slog.New(slog.DiscardHandler))
		check.Must(t, err)
	}
	front := httptest.NewServer(&door{streams: gateway.Streams, streaming: proxies[streaming], buffered: proxies[buffered]})
	t.Cleanup(front.Close)
	return front
}

func TestDoorSendsStreamsPastSAM(t *testing.T) {
	t.Parallel()
	front := newDoor(t, echo(t, "streaming").URL, echo(t, "buffered").URL)
	host := strings.TrimPrefix(front.URL, "http://")
	for target, want := range map[string]string{
		"POST /d/x/threads/y/runs/stream":      "streaming",
		"POST /d/x/threads/y/runs/wait":        "streaming",
		"GET /d/x/threads/y/runs/z/stream?a=b": "streaming",
		"GET /d/x/threads/y/runs/z/join/":      "streaming",
		"OPTIONS /d/x/threads/y/runs/stream":   "streaming",
		"POST /d/x/threads/y/runs":             "buffered",
		"GET /d/x/threads/y/runs/z":            "buffered",
		// The path is no operation of the server, so it is the application's.
		"GET /d/x/threads/y%2Fruns/z":             "streaming",
		"GET /d/x/own/route":                      "streaming",
		"GET /d/x/threads/runs%2Fstream?q=a%2Bb&": "buffered",
		"PATCH /v2/deployments/x?q=1;2":           "buffered",
		"GET /no/such/path":                       "buffered",
		"GET /":                                   "buffered",
	} {
		method, path, _ := strings.Cut(target, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, front.URL+path, strings.NewReader("body"))
		check.Must(t, err)
		request.Header.Set("X-Api-Key", "key")
		request.Header.Set("Accept-Encoding", "identity")
		response, err := http.DefaultTransport.RoundTrip(request)
		check.Must(t, err)
		body, err := io.ReadAll(response.Body)
		check.Must(t, err)
		check.Must(t, response.Body.Close())
		if got := string(body); got != want+" body" || response.StatusCode != http.StatusTeapot {
			t.Errorf("%s: got %d %q, want it from %s", target, response.StatusCode, got, want)
		}
		sent := path
		if strings.Contains(path, ";") {
			sent, _, _ = strings.Cut(path, "?") // a query that cannot be parsed is not passed on
		}
		if got, want := response.Header.Get("X-Seen"), strings.Join([]string{method, host, sent, "key", "identity"}, " "); got != want {
			t.Errorf("%s: the server has seen %q, want %q", target, got, want)
		}
		if got := response.Header.Values("Set-Cookie"); !slices.Equal(got, []string{"a=1", "b=2"}) {
			t.Errorf("%s: the cookies are %q", target, got)
		}
	}
}

func TestDoorStreams(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	streaming := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "one\n")
		check.Must(t, http.NewResponseController(w).Flush())
		<-more
		io.WriteString(w, "two\n")
	}))
	t.Cleanup(streaming.Close)
	front := newDoor(t, streaming.URL, echo(t, "buffered").URL)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/d/x/threads/y/runs/stream", nil)
	check.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	first := make([]byte, 4)
	_, err = io.ReadFull(response.Body, first)
	close(more)
	check.Must(t, err)
	rest, err := io.ReadAll(response.Body)
	check.Must(t, err)
	if got := string(first) + string(rest); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
}

func TestDoorSaysThatSAMIsGone(t *testing.T) {
	t.Parallel()
	gone := echo(t, "gone")
	gone.Close()
	front := newDoor(t, echo(t, "streaming").URL, gone.URL)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/ok", nil)
	check.Must(t, err)
	client := &http.Client{Timeout: 10 * time.Second}
	response, err := client.Do(request)
	check.Must(t, err)
	check.Must(t, response.Body.Close())
	if response.StatusCode != http.StatusBadGateway {
		t.Errorf("got %d", response.StatusCode)
	}
}

// TestContainersHaveAnotherNameForThisMachine checks the environment of containers, and that
// only variables are set that the template declares.
func TestContainersHaveAnotherNameForThisMachine(t *testing.T) {
	t.Parallel()
	s := &server{
		host:        "172.17.0.1",
		environment: map[string]string{"SLIPWAY_BASE_URL": "http://127.0.0.1:8080", "UNDECLARED": "x"},
		urls: map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_SFN": "http://172.17.0.1:2/x", "AWS_ENDPOINT_URL_KMS": "http://kms.example:3",
			"AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:4",
		},
	}
	declared := template.Function{Environment: map[string]string{
		"SLIPWAY_TABLE": "t", "SLIPWAY_BASE_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL_SFN": "", "AWS_ENDPOINT_URL_KMS": "",
	}}
	want := map[string]string{
		"SLIPWAY_TABLE": "t", "SLIPWAY_BASE_URL": "http://127.0.0.1:8080", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
		"AWS_ENDPOINT_URL_SFN": "http://172.17.0.1:2/x", "AWS_ENDPOINT_URL_KMS": "http://kms.example:3",
	}
	outside := s.functionEnvironment(declared)
	if !maps.Equal(outside, want) {
		t.Errorf("a process gets %v, want %v", outside, want)
	}
	want["AWS_ENDPOINT_URL_DYNAMODB"], want["AWS_ENDPOINT_URL_SFN"] = "http://host.docker.internal:1", "http://host.docker.internal:2/x"
	inside, err := s.containerEnvironment(outside)
	if err != nil || !maps.Equal(inside, want) {
		t.Errorf("a container gets %v, %v; want %v", inside, err, want)
	}
	if outside["AWS_ENDPOINT_URL_DYNAMODB"] != "http://127.0.0.1:1" {
		t.Error("the environment of the process has changed")
	}
	s.urls["AWS_ENDPOINT_URL_KMS"] = "http://[::1"
	if _, err := s.containerEnvironment(outside); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL_KMS") {
		t.Errorf("got %v", err)
	}
}

func TestNoDocker(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+url.PathEscape(t.TempDir())+"/docker.sock")
	c := testConfig(t)
	c.Containers, c.Build = true, builtNothing(t)
	_, err := open(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "make lambda-local") {
		t.Errorf("got %v, want the way without Docker", err)
	}
}
