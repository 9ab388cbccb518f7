package graph

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Client invokes agents over HTTP. It is safe for concurrent use and keeps connections open between
// invocations.
type Client struct {
	transport http.RoundTripper
	// guarded holds the transports for agents whose addresses users name, by the networks in
	// which such agents may be.
	guarded sync.Map
}

// NewClient returns a client that sends its requests through the transport; nil stands for
// NewTransport(). The client does not follow redirects: an agent answers at its endpoint, and
// its token is sent to no other address.
func NewClient(transport http.RoundTripper) *Client {
	if transport == nil {
		transport = NewTransport()
	}
	return &Client{transport: transport}
}

// NewTransport returns a transport for thousands of invocations per second of one agent. Each
// invocation may take as long as it needs.
func NewTransport() *http.Transport { return newTransport(&net.Dialer{Timeout: 5 * time.Second}) }

// transportTo returns the transport that reaches an agent. If a user has named the agent's address,
// it connects to public addresses and to those of the permitted networks, and to no others, also if
// a name is resolved to another one.
func (c *Client) transportTo(endpoint compute.Endpoint) http.RoundTripper {
	private := endpoint.Private
	if private == nil {
		return c.transport
	}
	made, known := c.guarded.Load(private)
	if !known {
		made, _ = c.guarded.LoadOrStore(private, newTransport(private.Dialer()))
	}
	transport, _ := made.(*http.Transport)
	return transport
}

func newTransport(dialer *net.Dialer) *http.Transport {
	// A host that vanished without closing its connections is noticed within a minute; an
	// agent that only thinks for long is not disturbed.
	dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4}
	return &http.Transport{
		// No proxy: agents are on this machine or in this network. The proxy that
		// the environment may name is for the internet.
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 1024,
		// Common servers close a connection that was idle for 5 s. The client closes it first,
		// because a request that is sent while the agent closes the connection fails, and
		// costs an attempt.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
	}
}

// Invoke starts an invocation and returns the agent's answer, which the caller closes. Ending ctx
// stops the agent's work at any time. The error is an *UnavailableError, a *RefusedError, a
// *ProtocolError or the context's error.
func (c *Client) Invoke(ctx context.Context, endpoint compute.Endpoint, invocation Invocation) (*Stream, error) {
	stream, err := c.invoke(ctx, endpoint, invocation)
	if err != nil {
		return nil, fmt.Errorf("invoke graph %s: %w", invocation.Graph, err)
	}
	return stream, nil
}

func (c *Client) invoke(ctx context.Context, endpoint compute.Endpoint, invocation Invocation) (*Stream, error) {
	body, err := encode(invocation)
	if err != nil {
		return nil, err
	}
	response, err := c.post(ctx, endpoint, invocation.RunID, body)
	if err != nil {
		return nil, err
	}
	stream, err := newStream(ctx, invocation.Graph, response)
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return stream, nil
}

const (
	// maxDescription bounds a description in bytes. The schemas of a graph with messages take
	// 20 to 100 kB. The server keeps descriptions.
	maxDescription = 4 << 20
	// maxDescribed bounds the graphs and subgraphs, and the routes, of a description: "{}" takes
	// more than a hundred times as much memory as text.
	maxDescribed = 1000
	// maxRuling is how many bytes a ruling may be larger than its question. A ruling repeats the
	// value that it is asked about, and has a user (16 KiB) or a filter.
	maxRuling = 64 << 10
	// maxCiphered is how many bytes the answer of an encryption may have. A body of the table has
	// 32 MiB at most.
	maxCiphered = 96 << 20
	// maxHeaders bounds the headers of an answer in bytes. Headers take up to twenty times as much
	// memory as text, and no budget counts them.
	maxHeaders = 64 << 10
)

// Describe asks the agent for its graphs, by OperationDescribe. reserve is asked before more of the
// answer is held in memory; nil sets no bound. The errors are the same as for Invoke.
func (c *Client) Describe(ctx context.Context, endpoint compute.Endpoint, request Invocation, reserve func(bytes int) error) (Description, error) {
	var description Description
	var err error
	description.Bytes, err = c.ask(ctx, endpoint, request, reserve, maxDescription, &description)
	if err == nil {
		err = description.check()
	}
	if err != nil {
		return Description{}, fmt.Errorf("describe agent: %w", err)
	}
	return description, nil
}

// check refuses a description with too many parts.
func (d Description) check() error {
	graphs := len(d.Graphs)
	for _, g := range d.Graphs {
		graphs += len(g.Subgraphs)
	}
	if graphs > maxDescribed || len(d.Routes) > maxDescribed {
		return &ProtocolError{Message: fmt.Sprintf("the description has %d graphs and %d routes, and may have %d of each", graphs, len(d.Routes), maxDescribed)}
	}
	return nil
}

// Rule asks the repository's own authentication, by OperationAuthenticate or
// OperationAuthorize. The errors are the same as for Invoke.
func (c *Client) Rule(ctx context.Context, endpoint compute.Endpoint, request Invocation) (Ruling, error) {
	var ruling Ruling
	if _, err := c.ask(ctx, endpoint, request, nil, maxRuling, &ruling); err != nil {
		return Ruling{}, fmt.Errorf("%s by the agent: %w", request.Operation, err)
	}
	return ruling, nil
}

// Embed asks the agent for the vectors of texts. reserve is asked before more of the answer is
// held in memory; nil sets no bound. The errors are the same as for Invoke.
func (c *Client) Embed(ctx context.Context, endpoint compute.Endpoint, texts Texts, reserve func(bytes int) error) (Embeddings, error) {
	var embeddings Embeddings
	_, err := c.ask(ctx, endpoint, Invocation{Operation: OperationEmbed, Embed: &texts}, reserve, MaxEventBytes, &embeddings)
	if err == nil && embeddings.Error == "" && (len(embeddings.Items) != len(texts.Items) || len(embeddings.Queries) != len(texts.Queries)) {
		err = &ProtocolError{Message: fmt.Sprintf("%d items and %d queries have the vectors of %d and %d",
			len(texts.Items), len(texts.Queries), len(embeddings.Items), len(embeddings.Queries))}
	}
	if err != nil {
		return Embeddings{}, fmt.Errorf("embed by the agent: %w", err)
	}
	return embeddings, nil
}

// Cipher asks the repository's own encryption, by OperationEncrypt or OperationDecrypt. reserve is
// asked before more of the answer is held in memory; nil sets no bound. The errors are the same as
// for Invoke.
func (c *Client) Cipher(ctx context.Context, endpoint compute.Endpoint, operation Operation, request Encryption, reserve func(bytes int) error) (Ciphered, error) {
	var ciphered Ciphered
	_, err := c.ask(ctx, endpoint, Invocation{Operation: operation, Encryption: &request}, reserve, maxCiphered, &ciphered)
	if err == nil && len(ciphered.Values) != len(request.Values) {
		err = &ProtocolError{Message: fmt.Sprintf("%d values became %d", len(request.Values), len(ciphered.Values))}
	}
	if err != nil {
		return Ciphered{}, fmt.Errorf("%s by the agent: %w", operation, err)
	}
	return ciphered, nil
}

// Values of headers that all requests share; no code changes them.
var (
	contentTypeJSON = []string{"application/json"}
	acceptBoth      = []string{"text/event-stream, application/json"}
)

// ask posts an invocation, reads a JSON answer into value, and returns the size of the answer. The
// answer may have limit bytes more than the invocation. reserve is asked as for Embed.
func (c *Client) ask(ctx context.Context, endpoint compute.Endpoint, request Invocation, reserve func(bytes int) error, limit int, value any) (size int, err error) {
	body, err := encode(request)
	if err != nil {
		return 0, err
	}
	response, err := c.post(ctx, endpoint, "", body)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer, err := readJSON(reserving{response.Body, reserve}, limit+len(body))
	if err != nil {
		return 0, classify(ctx, err)
	}
	if err := json.Unmarshal(answer, value); err != nil {
		return 0, &ProtocolError{Message: fmt.Sprintf("the answer does not have the required shape (%v): %s", err, excerpt(answer))}
	}
	return len(answer), nil
}

// post posts an encoded invocation, which may belong to a run. It returns the response only if its
// status is 200. The caller closes its body then.
func (c *Client) post(ctx context.Context, endpoint compute.Endpoint, runID string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL+"/invocations", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header["Content-Type"] = contentTypeJSON
	request.Header["Accept"] = acceptBoth
	identify(request.Header, endpoint, "Authorization")
	if parent := traceParent(runID); parent != "" {
		request.Header["Traceparent"] = []string{parent}
	}
	response, err := c.transportTo(endpoint).RoundTrip(request)
	if err != nil {
		return nil, classify(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, excerptBytes))
	if err != nil {
		return nil, classify(ctx, err)
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		// The agent asks for another attempt.
		return nil, refusal(response, said)
	}
	return nil, &RefusedError{Status: response.StatusCode, Body: excerpt(said)}
}

// encode writes an invocation without encoding its values again: they are JSON already, and
// may be large.
func encode(invocation Invocation) ([]byte, error) {
	values := invocation.State.Values
	invocation.State.Values = nil
	state, err := json.Marshal(invocation.State)
	if err != nil {
		return nil, fmt.Errorf("encode the state of an invocation: %w", err)
	}
	rest, err := json.Marshal(struct {
		Invocation

		State *State `json:"state,omitempty"` // in place of the other State
	}{Invocation: invocation})
	if err != nil {
		return nil, fmt.Errorf("encode invocation: %w", err)
	}
	const withoutValues = `{"values":null`
	state = bytes.TrimPrefix(state, []byte(withoutValues))
	if len(values) == 0 {
		values = json.RawMessage("null")
	}
	const before = `{"state":{"values":`
	body := make([]byte, 0, len(before)+len(values)+len(state)+len(rest))
	body = append(append(append(body, before...), values...), state...)
	return append(append(body, ','), rest[1:]...), nil
}

// mediaType returns the content type in lower case without its parameters.
func mediaType(response *http.Response) string {
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// traceParent returns the W3C trace context of an invocation. The run is the trace, so
// everything that the agent sends to its own tracing is found under the run. It is empty if
// the run id is not a UUID.
func traceParent(runID string) string {
	trace := strings.ToLower(strings.ReplaceAll(runID, "-", ""))
	if id, err := hex.DecodeString(trace); err != nil || len(id) != 16 {
		return ""
	}
	return fmt.Sprintf("00-%s-%016x-01", trace, rand.Uint64()|1) // a span id is never zero
}
