// Package description keeps what agents say of themselves: their graphs, and the routes of the
// applications of their repositories. Package agentserver asks the agents (describe.go there) and
// has the tests.
package description

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/singleflight"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/base/pattern"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	// maxDescribed bounds the memory of the descriptions that are kept, in bytes. A description
	// takes at most 6 MiB of it.
	maxDescribed = 32 << 20
	// maxPatterns bounds the size of all patterns of an application's routes. It is enough for
	// some 400 routes.
	maxPatterns = 20_000
	// maxMatching bounds the work of finding out whether a route takes a path: the sizes of the
	// routes' patterns times the length of the path. Every caller may cause this work. It takes at
	// most some 60 ms of one core. Routes of the size maxPatterns leave room for a path of 200
	// bytes; the server's own paths have about 100.
	maxMatching = 4_000_000
	// stepBytes is about the memory of a compiled pattern, for each unit of its size.
	stepBytes = 100
)

// Agent is what an agent has said of itself.
type Agent struct {
	graph.Description

	// routes are the routes whose patterns are read here. size is the size of all patterns.
	routes []route
	size   int
}

// route is a route of the repository's own application.
type route struct {
	methods []string
	pattern *pattern.Pattern
}

// Cache keeps the descriptions that agents give of themselves. Without them each request to a
// deployment with its own authentication or routes would first ask the agent, for 0.1 to 0.3 ms on
// one machine (BenchmarkInvoke of package graph). A description does not change in the life of a
// revision. Cache is safe for concurrent use; an agent is asked once, even if many requests wait
// for the answer.
type Cache struct {
	log     *slog.Logger
	agents  *lru.Cache[string, Agent]
	flights singleflight.Group
}

// New returns a cache without descriptions.
func New(log *slog.Logger) *Cache {
	return &Cache{log: log, agents: lru.New[string, Agent](maxDescribed)}
}

// Of returns the description with a name, such as a revision, of a workspace. If the cache lacks
// it, ask gives it. An error of ask goes to all callers that wait, and is not kept.
func (c *Cache) Of(ctx context.Context, workspace, name string, ask func(context.Context) (graph.Description, error)) (Agent, error) {
	if description, ok := c.agents.Get(name); ok {
		return description, nil
	}
	answers := c.flights.DoChan(name, func() (any, error) {
		if description, ok := c.agents.Get(name); ok {
			return description, nil // the answer came meanwhile
		}
		// The first caller may leave before the other callers, and its Hold is closed then.
		hold := budget.HoldOf(ctx).Another(workspace)
		defer hold.Close()
		ctx := budget.Holding(context.WithoutCancel(ctx), hold)
		var description Agent
		err := guard.Run(nil, "ask an agent what it is", func() error {
			answer, err := ask(ctx)
			if err == nil {
				description = c.read(ctx, name, answer)
				c.agents.Put(name, description, description.Bytes+stepBytes*description.size)
			}
			return err
		})
		return description, err
	})
	select {
	case answer := <-answers:
		return answer.Val.(Agent), answer.Err
	case <-ctx.Done():
		return Agent{}, ctx.Err()
	}
}

// read compiles the patterns of the routes in a description. A route whose pattern cannot be used
// shadows nothing; one line of the log says how many routes these are.
func (c *Cache) read(ctx context.Context, name string, answer graph.Description) Agent {
	description := Agent{Description: answer}
	var refused error
	for _, said := range answer.Routes {
		compiled, err := pattern.Compile(said.Pattern)
		if err != nil {
			refused = err
			continue
		}
		if description.size+compiled.Size() > maxPatterns {
			refused = fmt.Errorf("the patterns of all routes are larger than %d characters, each counted as often as it is repeated", maxPatterns)
			break
		}
		description.routes = append(description.routes, route{said.Methods, compiled})
		description.size += compiled.Size()
	}
	if refused != nil {
		c.log.WarnContext(ctx, "routes of an agent's own application have patterns that are not read here",
			"revision", name, "routes", len(answer.Routes)-len(description.routes), "error", refused)
	}
	return description
}

// Takes reports whether the repository's own application has a route for a request.
func (a Agent) Takes(method, path string) (bool, error) {
	if len(path)*a.size > maxMatching {
		return false, fault.New(fault.Invalid, "The path is too long to be matched with the routes of the agent's own application.")
	}
	return slices.ContainsFunc(a.routes, func(r route) bool {
		return (len(r.methods) == 0 || slices.Contains(r.methods, method)) && r.pattern.Matches(path)
	}), nil
}
