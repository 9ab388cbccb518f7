package template

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// API is a REST API with its one stage.
type API struct {
	// Name is the logical id.
	Name  string
	Stage string
	// DefaultAuthorizer is the name of the authorizer of routes that name no authorizer; in
	// Routes it is already filled in.
	DefaultAuthorizer string
	Authorizers       map[string]Authorizer
	// Responses are API Gateway's own answers, by type: UNAUTHORIZED, DEFAULT_4XX, ...
	Responses map[string]GatewayResponse
	// BinaryMediaTypes are the types whose bodies are sent as base64, written with a slash:
	// application/octet-stream.
	BinaryMediaTypes []string
	// Throttles are the limits of methods that the stage sets, in the template's order.
	Throttles []Throttle
}

// Throttle is how many requests a method takes: so many per second, and so many at once.
type Throttle struct {
	// Path and Method name one method as a route does; "/*" and "*" name each.
	Path, Method string
	Rate         float64
	Burst        int
}

// The quotas of an account, which hold for a method that the stage does not limit.
const quotaRate, quotaBurst = 10_000, 5_000

// Throttle returns the limit of a route's method: of its own, or of all methods.
func (a API) Throttle(route Route) Throttle {
	found := Throttle{Rate: quotaRate, Burst: quotaBurst}
	for _, t := range a.Throttles {
		switch {
		case t.Path == route.Path && t.Method == route.Method:
			return t
		case t.Path == allPaths && t.Method == allMethods:
			found = t
		}
	}
	return found
}

const allPaths, allMethods = "/*", "*"

// Authorizer is a function that API Gateway asks before it calls another function (type
// REQUEST).
type Authorizer struct {
	Name string
	// Function is the ARN of the function.
	Function string
	// Headers, QueryStrings and Context are the identity sources: a request that lacks a
	// source is answered with 401 at once, and all sources together are the key under which an
	// answer is cached.
	Headers, QueryStrings, Context []string
	// TTL is how long an answer is cached; 0 disables the cache.
	TTL time.Duration
}

// GatewayResponse is one of API Gateway's own answers.
type GatewayResponse struct {
	// Status is 0 if the default status is kept.
	Status int
	// Headers maps names to values; a value is a quoted text ('5') or a variable
	// (context.requestId).
	Headers map[string]string
	// Templates maps media types to bodies, which may contain variables ($context.requestId).
	Templates map[string]string
}

func readAPI(name string, properties map[string]any) (API, error) {
	var p struct {
		StageName        string
		BinaryMediaTypes []string
		Cors             any
		Auth             struct {
			DefaultAuthorizer string
			Authorizers       map[string]struct {
				FunctionArn string
				Identity    struct {
					Headers, QueryStrings, Context []string
					ReauthorizeEvery               *int
				}
			}
		}
		MethodSettings []struct {
			ResourcePath, HTTPMethod string
			ThrottlingRateLimit      *float64
			ThrottlingBurstLimit     *int
		}
		GatewayResponses map[string]struct {
			StatusCode         int
			ResponseTemplates  map[string]string
			ResponseParameters struct{ Headers map[string]string }
		}
	}
	if err := convert(properties, &p); err != nil {
		return API{}, err
	}
	api := API{
		Name: name, Stage: p.StageName, DefaultAuthorizer: p.Auth.DefaultAuthorizer,
		Authorizers: map[string]Authorizer{}, Responses: map[string]GatewayResponse{},
	}
	if p.Cors != nil {
		return API{}, errors.New("the API has Cors, but functions answer preflights")
	}
	for name, a := range p.Auth.Authorizers {
		const fallback = 300 // API Gateway's default
		seconds := fallback
		if a.Identity.ReauthorizeEvery != nil {
			seconds = *a.Identity.ReauthorizeEvery
		}
		api.Authorizers[name] = Authorizer{
			Name: name, Function: a.FunctionArn, TTL: time.Duration(seconds) * time.Second,
			Headers: a.Identity.Headers, QueryStrings: a.Identity.QueryStrings, Context: a.Identity.Context,
		}
	}
	for _, m := range p.MethodSettings {
		if m.ThrottlingRateLimit == nil || m.ThrottlingBurstLimit == nil || (m.ResourcePath == allPaths) != (m.HTTPMethod == allMethods) {
			return API{}, fmt.Errorf("the setting of the method %s %s must limit rate and burst, of one method or of all", m.HTTPMethod, m.ResourcePath)
		}
		api.Throttles = append(api.Throttles, Throttle{m.ResourcePath, m.HTTPMethod, *m.ThrottlingRateLimit, *m.ThrottlingBurstLimit})
	}
	for kind, r := range p.GatewayResponses {
		api.Responses[kind] = GatewayResponse{Status: r.StatusCode, Headers: r.ResponseParameters.Headers, Templates: r.ResponseTemplates}
	}
	for _, mediaType := range p.BinaryMediaTypes {
		api.BinaryMediaTypes = append(api.BinaryMediaTypes, unescape(mediaType))
	}
	return api, nil
}

func compareRoutes(a, b Route) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
}
