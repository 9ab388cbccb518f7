package apigateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/test/template"
)

// apiID is the id of the API, as far as the API has an id.
const apiID = "local"

// dropped are headers that the gateway does not pass on.
var dropped = []string{"Connection", "Content-Length", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// event is the input of a function. Empty maps are null, as in the cloud.
type event struct {
	Type                            string              `json:"type,omitempty"`
	MethodARN                       string              `json:"methodArn,omitempty"`
	Resource                        string              `json:"resource"`
	Path                            string              `json:"path"`
	HTTPMethod                      string              `json:"httpMethod"`
	Headers                         map[string]string   `json:"headers"`
	MultiValueHeaders               map[string][]string `json:"multiValueHeaders"`
	QueryStringParameters           map[string]string   `json:"queryStringParameters"`
	MultiValueQueryStringParameters map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters                  map[string]string   `json:"pathParameters"`
	StageVariables                  map[string]string   `json:"stageVariables"`
	RequestContext                  requestContext      `json:"requestContext"`
	Body                            *string             `json:"body"`
	IsBase64Encoded                 bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID         string         `json:"accountId"`
	APIID             string         `json:"apiId"`
	Authorizer        map[string]any `json:"authorizer,omitempty"`
	DomainName        string         `json:"domainName"`
	DomainPrefix      string         `json:"domainPrefix"`
	ExtendedRequestID string         `json:"extendedRequestId"`
	HTTPMethod        string         `json:"httpMethod"`
	Identity          identity       `json:"identity"`
	Path              string         `json:"path"`
	Protocol          string         `json:"protocol"`
	RequestID         string         `json:"requestId"`
	RequestTime       string         `json:"requestTime"`
	RequestTimeEpoch  int64          `json:"requestTimeEpoch"`
	ResourceID        string         `json:"resourceId"`
	ResourcePath      string         `json:"resourcePath"`
	Stage             string         `json:"stage"`
}

// identity also has the members that are null for callers without an AWS identity.
type identity struct {
	AccessKey                     *string `json:"accessKey"`
	AccountID                     *string `json:"accountId"`
	Caller                        *string `json:"caller"`
	CognitoAuthenticationProvider *string `json:"cognitoAuthenticationProvider"`
	CognitoAuthenticationType     *string `json:"cognitoAuthenticationType"`
	CognitoIdentityID             *string `json:"cognitoIdentityId"`
	CognitoIdentityPoolID         *string `json:"cognitoIdentityPoolId"`
	PrincipalOrgID                *string `json:"principalOrgId"`
	SourceIP                      string  `json:"sourceIp"`
	User                          *string `json:"user"`
	UserAgent                     string  `json:"userAgent"`
	UserARN                       *string `json:"userArn"`
}

// event describes the request as both authorizers and functions get it.
func (g *Gateway) event(c *call) event {
	r := c.request
	headers := headersOf(c)
	query := queryOf(r.URL.RawQuery)
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	prefix, _, _ := strings.Cut(host, ".")
	return event{
		Resource: c.route.Path, Path: r.URL.EscapedPath(), HTTPMethod: r.Method,
		Headers: lasts(headers), MultiValueHeaders: headers,
		QueryStringParameters: lasts(query), MultiValueQueryStringParameters: query,
		PathParameters: nonEmpty(c.parameters),
		RequestContext: requestContext{
			AccountID: g.account, APIID: apiID, Authorizer: c.authorizer, DomainName: r.Host, DomainPrefix: prefix, ExtendedRequestID: c.id,
			HTTPMethod: r.Method, Identity: identity{SourceIP: sourceIP(r), UserAgent: r.UserAgent()}, Path: r.URL.EscapedPath(),
			Protocol: r.Proto, RequestID: c.id, RequestTime: c.received.UTC().Format("02/Jan/2006:15:04:05 -0700"),
			RequestTimeEpoch: c.received.UnixMilli(), ResourceID: resourceID(c.route), ResourcePath: c.route.Path, Stage: g.api.Stage,
		},
	}
}

// proxyEvent is the event of the route's function.
func (g *Gateway) proxyEvent(c *call) ([]byte, error) {
	e := g.event(c)
	if len(c.body) > 0 {
		text := string(c.body)
		if g.isBinary(c.request.Header.Get("Content-Type")) {
			text, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(c.body), true
		}
		e.Body = &text
	}
	return json.Marshal(e)
}

// isBinary reports whether bodies of the type travel as base64.
func (g *Gateway) isBinary(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	for _, binary := range g.api.BinaryMediaTypes {
		family, isFamily := strings.CutSuffix(binary, "*")
		if binary == "*/*" || binary == mediaType || isFamily && strings.HasPrefix(mediaType, family) {
			return true
		}
	}
	return false
}

// headersOf returns the request's headers, and the headers that the gateway adds.
func headersOf(c *call) map[string][]string {
	r := c.request
	headers := maps.Clone(map[string][]string(r.Header))
	for _, name := range dropped {
		delete(headers, name)
	}
	_, port, _ := net.SplitHostPort(r.Host)
	headers["Host"] = []string{r.Host}
	headers["X-Amzn-Trace-Id"] = []string{fmt.Sprintf("Root=1-%08x-%s", c.received.Unix(), strings.ReplaceAll(c.id, "-", "")[:24])}
	headers["X-Forwarded-For"] = []string{strings.Join(append(slices.Clone(r.Header["X-Forwarded-For"]), sourceIP(r)), ", ")}
	headers["X-Forwarded-Port"] = []string{port}
	headers["X-Forwarded-Proto"] = []string{"http"}
	return headers
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// queryOf reads a query as the gateway does: text that cannot be decoded is kept unchanged.
func queryOf(raw string) map[string][]string {
	if raw == "" {
		return nil
	}
	query := map[string][]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name = unquery(name); name != "" {
			query[name] = append(query[name], unquery(value))
		}
	}
	return nonEmpty(query)
}

func unquery(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// lasts returns the last value of each name, as in the event's maps with one value.
func lasts(many map[string][]string) map[string]string {
	if many == nil {
		return nil
	}
	single := map[string]string{}
	for name, values := range many {
		if len(values) > 0 {
			single[name] = values[len(values)-1]
		}
	}
	return single
}

func nonEmpty[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func resourceID(route template.Route) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, route.Path)
}

// methodARN returns the ARN of the method that the caller wants to call.
func (g *Gateway) methodARN(c *call) string {
	return "arn:aws:execute-api:" + g.region + ":" + g.account + ":" + apiID + "/" + g.api.Stage + "/" + c.request.Method + "/" +
		strings.TrimPrefix(c.request.URL.EscapedPath(), "/")
}
