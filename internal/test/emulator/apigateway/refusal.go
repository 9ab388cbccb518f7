package apigateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// refusal is an answer that the gateway itself sends.
type refusal struct {
	// kind is the type of the gateway response, "" if the refusal has no type of its own.
	kind   string
	status int
	// message is $context.error.message; some errors have no message.
	message *string
	cause   error
}

var (
	missingToken    = refusal{kind: "MISSING_AUTHENTICATION_TOKEN", status: http.StatusForbidden, message: new("Missing Authentication Token")}
	unauthorized    = refusal{kind: "UNAUTHORIZED", status: http.StatusUnauthorized, message: new("Unauthorized")}
	notAllowed      = refusal{kind: "ACCESS_DENIED", status: http.StatusForbidden, message: new("User is not authorized to access this resource")}
	denied          = refusal{kind: "ACCESS_DENIED", status: http.StatusForbidden, message: new("User is not authorized to access this resource with an explicit deny")}
	requestTooLarge = refusal{kind: "REQUEST_TOO_LARGE", status: http.StatusRequestEntityTooLarge, message: new("Request Too Long")}
	throttled       = refusal{kind: "THROTTLED", status: http.StatusTooManyRequests, message: new("Too Many Requests")}
)

func badRequest(cause error) *refusal {
	return &refusal{kind: "BAD_REQUEST_BODY", status: http.StatusBadRequest, message: new("Invalid request body"), cause: cause}
}

func authorizerFailure(cause error) *refusal {
	return &refusal{kind: "AUTHORIZER_FAILURE", status: http.StatusInternalServerError, cause: cause}
}

func authorizerMisconfigured(cause error) *refusal {
	return &refusal{kind: "AUTHORIZER_CONFIGURATION_ERROR", status: http.StatusInternalServerError, cause: cause}
}

func integrationTimeout(cause error) *refusal {
	return &refusal{kind: "INTEGRATION_TIMEOUT", status: http.StatusGatewayTimeout, message: new("Endpoint request timed out"), cause: cause}
}

func badGateway(cause error) *refusal {
	return &refusal{status: http.StatusBadGateway, message: new("Internal server error"), cause: cause}
}

func internalError(cause error) *refusal {
	return &refusal{status: http.StatusInternalServerError, message: new("Internal server error"), cause: cause}
}

// refuse answers with the template's response: the response of the type, else the response of
// the type's class, else API Gateway's default.
func (g *Gateway) refuse(w http.ResponseWriter, c *call, r *refusal) {
	response, found := g.api.Responses[r.kind]
	if !found {
		response = g.api.Responses[fmt.Sprintf("DEFAULT_%dXX", r.status/100)]
	}
	status := r.status
	if response.Status != 0 {
		status = response.Status
	}
	variables := c.variables(r)
	contentType, body := "application/json", `{"message":$context.error.messageString}`
	for _, mediaType := range slices.Sorted(maps.Keys(response.Templates)) {
		contentType, body = mediaType, response.Templates[mediaType]
		break
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	if r.kind != "" {
		header.Set("X-Amzn-ErrorType", r.kind)
	}
	for name, value := range response.Headers {
		if text, quoted := strings.CutPrefix(value, "'"); quoted {
			header.Set(name, strings.TrimSuffix(text, "'"))
			continue
		}
		header.Set(name, variables["$"+value])
	}
	w.WriteHeader(status)
	fmt.Fprint(w, expand(body, variables))
}

// variables returns the variables that gateway responses may use.
func (c *call) variables(r *refusal) map[string]string {
	quoted, plain := "null", ""
	if r.message != nil {
		plain = *r.message
		text, err := json.Marshal(plain)
		if err == nil {
			quoted = string(text)
		}
	}
	return map[string]string{
		"$context.requestId":           c.id,
		"$context.extendedRequestId":   c.id,
		"$context.error.message":       plain,
		"$context.error.messageString": quoted,
		"$context.error.responseType":  r.kind,
		"$context.httpMethod":          c.request.Method,
		"$context.path":                c.request.URL.EscapedPath(),
		"$context.resourcePath":        c.route.Path,
	}
}

var variable = regexp.MustCompile(`\$context(\.[a-zA-Z]+)+`)

// expand replaces the variables; unknown variables are empty.
func expand(text string, variables map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string { return variables[name] })
}
