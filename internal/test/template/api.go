package template

import (
	"cmp"
	"errors"
	"strings"
	"time"
)

// API is a REST API with its one stage.
type API struct {
	// Name is the logical id.
	Name  string
	Stage string
	// DefaultAuthorizer is the name of the authorizer of routes that name none; Routes have it
	// filled in already.
	DefaultAuthorizer string
	Authorizers       map[string]Authorizer
	// Responses are what API Gateway answers by itself, by type: UNAUTHORIZED, DEFAULT_4XX, ...
	Responses map[string]GatewayResponse
	// BinaryMediaTypes are the types whose bodies travel as base64, written with a slash:
	// application/octet-stream.
	BinaryMediaTypes []string
	// CORS is what API Gateway answers preflights of browsers with, on every path; nil when it
	// answers none.
	CORS *CORS
}

// CORS are the headers of the answer to a preflight, as they are sent.
type CORS struct{ AllowOrigin, AllowMethods, AllowHeaders, MaxAge string }

// Authorizer is a function that API Gateway asks before it calls another (type REQUEST).
type Authorizer struct {
	Name string
	// Function is the ARN of the function.
	Function string
	// Headers, QueryStrings and Context are the identity sources: a request without one of them is
	// answered 401 at once, and together they are the key under which an answer is cached.
	Headers, QueryStrings, Context []string
	// TTL is how long an answer is cached; 0 is not at all.
	TTL time.Duration
}

// GatewayResponse is an answer that API Gateway gives by itself.
type GatewayResponse struct {
	// Status is 0 when the usual one is kept.
	Status int
	// Headers are by name; a value is a quoted text ('5') or a variable (context.requestId).
	Headers map[string]string
	// Templates are the bodies by media type; they may hold variables ($context.requestId).
	Templates map[string]string
}

func readAPI(name string, properties map[string]any) (API, error) {
	var p struct {
		StageName        string
		BinaryMediaTypes []string
		// The values have quotes around them.
		Cors *CORS
		Auth struct {
			DefaultAuthorizer                   string
			AddDefaultAuthorizerToCorsPreflight *bool
			Authorizers                         map[string]struct {
				FunctionArn string
				Identity    struct {
					Headers, QueryStrings, Context []string
					ReauthorizeEvery               *int
				}
			}
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
		// SAM asks the authorizer of preflights too unless it is told not to, and browsers send no
		// key with them.
		if ask := p.Auth.AddDefaultAuthorizerToCorsPreflight; ask == nil || *ask {
			return API{}, errors.New("Auth.AddDefaultAuthorizerToCorsPreflight must be false")
		}
		unquoted := func(value string) string { return strings.Trim(value, "'") }
		api.CORS = &CORS{
			AllowOrigin: unquoted(p.Cors.AllowOrigin), AllowMethods: unquoted(p.Cors.AllowMethods),
			AllowHeaders: unquoted(p.Cors.AllowHeaders), MaxAge: unquoted(p.Cors.MaxAge),
		}
	}
	for name, a := range p.Auth.Authorizers {
		const fallback = 300 // what API Gateway takes when nothing is said
		seconds := fallback
		if a.Identity.ReauthorizeEvery != nil {
			seconds = *a.Identity.ReauthorizeEvery
		}
		api.Authorizers[name] = Authorizer{
			Name: name, Function: a.FunctionArn, TTL: time.Duration(seconds) * time.Second,
			Headers: a.Identity.Headers, QueryStrings: a.Identity.QueryStrings, Context: a.Identity.Context,
		}
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
