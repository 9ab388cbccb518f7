package computetest

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Hasher derives the invoke tokens of the suite's releases.
type Hasher struct{}

// MAC implements secret.Hasher.
func (Hasher) MAC(purpose string, data []byte) []byte {
	mac := hmac.New(sha256.New, []byte("key of the tests "+purpose))
	mac.Write(data)
	return mac.Sum(nil)
}

// NewRelease returns a release of an agent of the test binary, with an environment.
func NewRelease(agent string, env ...string) compute.Release {
	program, err := os.Executable()
	panicOn(err)
	now := time.Now()
	r := compute.Release{
		Ref:      compute.Ref{Workspace: id.New(now), Deployment: id.New(now), Revision: id.New(now)},
		Artifact: build.Artifact{Dir: os.TempDir(), Start: []string{program}, Env: map[string]string{"AGENT": agent}},
		Env:      map[string]string{},
	}
	r.Token = secret.InvokeToken(Hasher{}, r.Revision)
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		r.Artifact.Env[name] = value
	}
	return r
}

// Ask invokes an agent and returns its whole answer. An answer that breaks off is an error,
// too.
func Ask(ctx context.Context, endpoint compute.Endpoint, words string) (string, error) {
	response, err := Invoke(ctx, endpoint, words)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(response.Status+": "+string(body)))
	}
	return string(body), err
}

// Invoke begins an invocation, on a connection of its own.
func Invoke(ctx context.Context, endpoint compute.Endpoint, words string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL+"/invocations", strings.NewReader(words))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+endpoint.Token)
	request.Close = true
	return http.DefaultTransport.RoundTrip(request)
}

// Switchboard takes the calls of agents.
type Switchboard struct {
	t        *testing.T
	listener net.Listener
}

// Host is the address at which agents reach the tests. TestMain sets it if agents have another
// loopback interface.
var Host = "127.0.0.1"

// NewSwitchboard listens as long as the test lasts.
func NewSwitchboard(t *testing.T) Switchboard {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, listener.Close()) })
	return Switchboard{t, listener}
}

// Address is the address that an agent calls.
func (s Switchboard) Address() string { return s.listener.Addr().String() }

// Accept waits for a call.
func (s Switchboard) Accept() Call {
	s.t.Helper()
	check.Must(s.t, s.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	conn, err := s.listener.Accept()
	check.Must(s.t, err)
	s.t.Cleanup(func() { check.Must(s.t, conn.Close()) })
	check.Must(s.t, conn.SetDeadline(time.Now().Add(patience)))
	return Call{s.t, conn, bufio.NewReader(conn)}
}

// Call is a connection that an agent made.
type Call struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// Say sends a line.
func (c Call) Say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	check.Must(c.t, err)
}

// Hear waits for a line.
func (c Call) Hear() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	check.Must(c.t, err)
	return strings.TrimSuffix(line, "\n")
}

// WantDeath waits until the agent has ended.
func (c Call) WantDeath() {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err == nil || os.IsTimeout(err) {
		c.t.Fatalf("the agent is alive and says %q, %v", line, err)
	}
}

// patience bounds the waits of a test.
const patience = 2 * time.Minute

// fixture is a target under test.
type fixture struct {
	*testing.T
	target compute.Target
}

func (f fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	f.Cleanup(cancel)
	return ctx
}

// shortContexts are a context that has ended, and one that ends soon.
func (f fixture) shortContexts() []context.Context {
	ended, cancel := context.WithCancel(f.context())
	cancel()
	short, cancel := context.WithTimeout(f.context(), 50*time.Millisecond)
	f.Cleanup(cancel)
	return []context.Context{ended, short}
}

func (f fixture) apply(r compute.Release) {
	f.Helper()
	check.Must(f.T, f.target.Apply(f.context(), r))
}

func (f fixture) remove(r compute.Release) {
	f.Helper()
	check.Must(f.T, f.target.Remove(f.context(), r.Ref))
}

// want waits for the release's status.
func (f fixture) want(r compute.Release, state compute.State, reason string) compute.Status {
	f.Helper()
	got, err := f.target.Await(f.context(), r.Ref)
	if err != nil || got.State != state || got.Reason != reason {
		f.Fatalf("release is %s %s %q, %v; want %s %s", got.State, got.Reason, got.Message, err, state, reason)
	}
	return got
}

// wantUnavailable checks that a release is not available, and why. A target may leave it to the
// address of the release to say so.
func (f fixture) wantUnavailable(ctx context.Context, r compute.Release, want compute.State) {
	f.Helper()
	endpoint, done, err := f.target.Acquire(ctx, r.Ref)
	if err == nil {
		defer done()
		answer, err := Ask(f.context(), endpoint, "pid")
		if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || !strings.Contains(err.Error(), "is "+string(want)) {
			f.Errorf("an invocation: got %q, %v, want 503 and %s", answer, err, want)
		}
		return
	}
	unavailable, ok := errors.AsType[*compute.UnavailableError](err)
	if !ok || unavailable.Status.State != want || unavailable.Ref != r.Ref {
		f.Errorf("Acquire: got %v, want an UnavailableError with %s", err, want)
	}
}

// healthy applies a release and waits until it is healthy.
func (f fixture) healthy(r compute.Release) {
	f.Helper()
	f.apply(r)
	f.want(r, compute.Healthy, "")
}

// ask invokes the release as one caller.
func (f fixture) ask(r compute.Release, words string) string {
	f.Helper()
	endpoint, done, err := f.target.Acquire(f.context(), r.Ref)
	check.Must(f.T, err)
	defer done()
	answer, err := Ask(f.context(), endpoint, words)
	check.Must(f.T, err)
	return answer
}

// held is an invocation that lasts until it is told to end.
type held struct {
	f     fixture
	call  Call
	done  func()
	body  io.ReadCloser
	lines *bufio.Reader
}

// hold begins a held invocation and returns when the first part of its answer has arrived.
func (f fixture) hold(ctx context.Context, r compute.Release) held {
	f.Helper()
	calls := NewSwitchboard(f.T)
	endpoint, done, err := f.target.Acquire(ctx, r.Ref)
	check.Must(f.T, err)
	response, err := Invoke(ctx, endpoint, "hold "+calls.Address())
	check.Must(f.T, err)
	f.Cleanup(func() { response.Body.Close() })
	h := held{f, Call{}, done, response.Body, bufio.NewReader(response.Body)}
	if line, err := h.lines.ReadString('\n'); err != nil || line != "held\n" {
		f.Fatalf("the answer begins with %q, %v", line, err)
	}
	h.call = calls.Accept()
	return h
}

// finish lets the invocation end and checks that all of its answer arrives.
func (h held) finish() {
	h.f.Helper()
	h.call.Say("go on")
	rest, err := io.ReadAll(h.lines)
	if err = errors.Join(err, h.body.Close()); err != nil || string(rest) != "done\n" {
		h.f.Errorf("the answer ends with %q, %v", rest, err)
	}
	h.done()
}
