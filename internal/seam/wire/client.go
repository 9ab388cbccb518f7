package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// answerLimit is how long the host may take, in addition to the time that it is asked to
	// wait.
	answerLimit = 10 * time.Second
	// lastWordLimit is how long a caller without time left waits to learn the present state.
	lastWordLimit = 2 * time.Second
	// maxAnswer is how many bytes of an answer are read at most.
	maxAnswer = 4 << 20
)

// Client calls an agent host.
type Client struct {
	base, token string
	http        *http.Client
}

// NewClient returns a client of the host at base. A nil client stands for a client that
// connects directly to the host, and through no proxy that the environment names.
func NewClient(base, token string, client *http.Client) *Client {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}}
	}
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: client}
}

// URL is the address of a path.
func (c *Client) URL(path string) string { return c.base + path }

// Send makes a request whose answer has no content except success. A nil body sends no body.
func (c *Client) Send(ctx context.Context, method, path string, body any) error {
	return c.do(ctx, method, path, body, nil, 0)
}

// Post makes a request and returns its answer.
func Post[T any](ctx context.Context, c *Client, path string, body any) (answer T, err error) {
	err = c.do(ctx, http.MethodPost, path, body, &answer, 0)
	return answer, err
}

// Listen calls heard for each piece of an answer that continues until ctx ends, or until the
// host ends it.
func (c *Client) Listen(ctx context.Context, path string, heard func()) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(path), http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("agent host: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("agent host answered %s", response.Status)
	}
	for piece := make([]byte, 64); ; {
		if _, err := response.Body.Read(piece); err != nil {
			return fmt.Errorf("agent host: %w", err)
		}
		heard()
	}
}

// Await requests a path until its answer is settled or ctx ends. The end of ctx is no error:
// the answer then is the present state.
func Await[T any](ctx context.Context, c *Client, path string, settled func(T) bool) (T, error) {
	for ctx.Err() == nil {
		answer, err := ask[T](ctx, c, path, MaxWait)
		if ctx.Err() != nil {
			break
		}
		if err != nil || settled(answer) {
			return answer, err
		}
	}
	now, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordLimit)
	defer cancel()
	return ask[T](now, c, path, 0)
}

func ask[T any](ctx context.Context, c *Client, path string, wait time.Duration) (answer T, err error) {
	err = c.do(ctx, http.MethodGet, path+"?"+Wait+"="+wait.String(), nil, &answer, wait)
	return answer, err
}

// do makes a request, with a body unless it is nil, and decodes a successful answer unless out is
// nil.
func (c *Client) do(ctx context.Context, method, path string, body, out any, wait time.Duration) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wait+answerLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.URL(path), bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("agent host: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("agent host: %w", err)
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		if out != nil {
			err = json.Unmarshal(answer, out)
		}
		if err != nil {
			return fmt.Errorf("decode answer of the agent host: %w", err)
		}
		return nil
	}
	var problem Problem
	if err := json.Unmarshal(answer, &problem); err != nil || problem.Detail == "" {
		problem.Detail = "it is no agent host"
	}
	return fmt.Errorf("agent host answered %s: %s", response.Status, problem.Detail)
}
