package apigateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/template"
)

// authorizerTimeout is how long an authorizer may take.
const authorizerTimeout = 29 * time.Second

// decision is the answer of an authorizer.
type decision struct {
	PrincipalID    string         `json:"principalId"`
	Context        map[string]any `json:"context"`
	PolicyDocument struct {
		Statement []struct {
			Effect   string    `json:"Effect"`
			Action   oneOrMany `json:"Action"`
			Resource oneOrMany `json:"Resource"`
		} `json:"Statement"`
	} `json:"policyDocument"`
}

// oneOrMany is a list of texts. A single text may be written without a list.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(o))
}

// decisions holds the answers that are still valid.
type decisions struct {
	mu    sync.Mutex
	known map[string]remembered
}

type remembered struct {
	decision decision
	until    time.Time
}

// authorize asks the authorizer, or its cache, and notes its answer about the caller.
func (g *Gateway) authorize(c *call, authorizer template.Authorizer) *refusal {
	key, complete := identityKey(c, authorizer)
	if !complete {
		return &unauthorized
	}
	d, known := g.decisions.get(key, g.now())
	if !known || authorizer.TTL == 0 {
		var refused *refusal
		if d, refused = g.ask(c, authorizer); refused != nil {
			return refused
		}
		if authorizer.TTL > 0 {
			g.decisions.put(key, remembered{d, g.now().Add(authorizer.TTL)}, g.now())
		}
	}
	if refused := d.judge(g.methodARN(c)); refused != nil {
		return refused
	}
	c.authorizer = map[string]any{"principalId": d.PrincipalID, "integrationLatency": 0}
	maps.Copy(c.authorizer, d.Context)
	return nil
}

// identityKey joins the values of the identity sources, all of which must be present.
func identityKey(c *call, authorizer template.Authorizer) (key string, complete bool) {
	var parts []string
	complete = true
	add := func(value string) {
		complete = complete && value != ""
		parts = append(parts, strconv.Quote(value))
	}
	for _, name := range authorizer.Headers {
		add(strings.Join(c.request.Header.Values(name), ","))
	}
	query := queryOf(c.request.URL.RawQuery)
	for _, name := range authorizer.QueryStrings {
		add(strings.Join(query[name], ","))
	}
	for _, name := range authorizer.Context {
		add(c.variables(&refusal{})["$context."+name])
	}
	return authorizer.Name + " " + strings.Join(parts, " "), complete
}

func (g *Gateway) ask(c *call, authorizer template.Authorizer) (decision, *refusal) {
	e := g.event(c)
	e.Type, e.MethodARN = "REQUEST", g.methodARN(c)
	payload, err := json.Marshal(e)
	if err != nil {
		return decision{}, authorizerFailure(err)
	}
	ctx, cancel := context.WithTimeout(c.request.Context(), authorizerTimeout)
	defer cancel()
	answer, err := g.functions.Invoke(ctx, authorizer.Function, payload)
	failure, failed := errors.AsType[*lambda.FunctionError](err)
	switch {
	case failed && failure.Message == "Unauthorized":
		return decision{}, &unauthorized
	case failed:
		return decision{}, authorizerFailure(err)
	case err != nil: // it was throttled, or its time was over
		return decision{}, authorizerMisconfigured(err)
	}
	var d decision
	if err := json.Unmarshal(answer, &d); err != nil {
		return decision{}, authorizerMisconfigured(fmt.Errorf("the authorizer answers %.200s: %w", answer, err))
	}
	if err := d.check(); err != nil {
		return decision{}, authorizerMisconfigured(fmt.Errorf("the authorizer answers %.200s: %w", answer, err))
	}
	return d, nil
}

// check refuses the answers that API Gateway refuses, and converts all values of the context
// to texts.
func (d *decision) check() error {
	if d.PrincipalID == "" || len(d.PolicyDocument.Statement) == 0 {
		return errors.New("a principalId and a policyDocument with statements are required")
	}
	for name, value := range d.Context {
		switch value := value.(type) {
		case string:
		case bool:
			d.Context[name] = strconv.FormatBool(value)
		case float64:
			d.Context[name] = strconv.FormatFloat(value, 'f', -1, 64)
		default:
			return fmt.Errorf("context.%s is neither a text, a number nor a boolean", name)
		}
	}
	return nil
}

// judge applies the policy to a method: a denial wins over an allowance, and a method that no
// statement allows is not allowed.
func (d *decision) judge(methodARN string) *refusal {
	verdict := &notAllowed
	for _, statement := range d.PolicyDocument.Statement {
		if !matches(statement.Action, "execute-api:Invoke") || !matches(statement.Resource, methodARN) {
			continue
		}
		switch statement.Effect {
		case "Deny":
			return &denied
		case "Allow":
			verdict = nil
		}
	}
	return verdict
}

// matches reports whether one of the patterns matches the text; in a pattern, * matches any
// text and ? one character.
func matches(patterns []string, text string) bool {
	// The * of path.Match stops at a slash, so all slashes are replaced.
	flat := strings.NewReplacer("/", "\x00", "[", "\x01", "\\", "\x02")
	for _, pattern := range patterns {
		if ok, err := path.Match(flat.Replace(pattern), flat.Replace(text)); err == nil && ok {
			return true
		}
	}
	return false
}

func (d *decisions) get(key string, now time.Time) (decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.known[key]
	return r.decision, ok && now.Before(r.until)
}

// put remembers a decision and forgets expired decisions.
func (d *decisions) put(key string, r remembered, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, old := range d.known {
		if !now.Before(old.until) {
			delete(d.known, other)
		}
	}
	d.known[key] = r
}
