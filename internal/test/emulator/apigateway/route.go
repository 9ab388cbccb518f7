package apigateway

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/test/template"
)

// anyMethod is the method of routes that take all.
const anyMethod = "ANY"

// node is a resource of the API: what is below one segment of a path.
type node struct {
	// fixed are the segments that stand for themselves.
	fixed map[string]*node
	// variable is the segment that stands for any one, name what it is called.
	variable *node
	name     string
	// rest is a segment like {proxy+}, which stands for one or more.
	rest     *node
	restName string
	// methods are the routes of the path that ends here.
	methods map[string]template.Route
}

// segments splits a path; a slash at its end means nothing.
func segments(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func (n *node) add(route template.Route, authorizers map[string]template.Authorizer) error {
	if _, known := authorizers[route.Authorizer]; !known && route.Authorizer != "" {
		return fmt.Errorf("route %s %s: there is no authorizer %s", route.Method, route.Path, route.Authorizer)
	}
	at := n
	for _, segment := range segments(route.Path) {
		next, err := at.child(segment)
		if err != nil {
			return fmt.Errorf("route %s %s: %w", route.Method, route.Path, err)
		}
		at = next
	}
	if at.methods == nil {
		at.methods = map[string]template.Route{}
	}
	if other, taken := at.methods[route.Method]; taken {
		return fmt.Errorf("route %s %s: %s and %s both have it", route.Method, route.Path, other.Function, route.Function)
	}
	at.methods[route.Method] = route
	return nil
}

// child finds or makes the resource below a segment.
func (n *node) child(segment string) (*node, error) {
	name, isVariable := strings.CutPrefix(segment, "{")
	name = strings.TrimSuffix(name, "}")
	rest, isRest := strings.CutSuffix(name, "+")
	switch {
	case isVariable && isRest:
		if n.rest == nil {
			n.rest, n.restName = &node{}, rest
		}
		return n.rest, sameName(n.restName, rest)
	case isVariable:
		if n.variable == nil {
			n.variable, n.name = &node{}, name
		}
		return n.variable, sameName(n.name, name)
	}
	if n.fixed == nil {
		n.fixed = map[string]*node{}
	}
	if n.fixed[segment] == nil {
		n.fixed[segment] = &node{}
	}
	return n.fixed[segment], nil
}

// sameName refuses what API Gateway refuses: one variable with two names.
func sameName(one, other string) error {
	if one != other {
		return fmt.Errorf("the variable {%s} is called {%s} by another route", other, one)
	}
	return nil
}

// find returns the routes of the resource that is the closest match, and the values of the variables. A segment that stands for itself
// comes before a variable, and a variable before the rest of the path.
func (n *node) find(path []string) (map[string]template.Route, map[string]string) {
	if len(path) == 0 {
		if n.methods == nil {
			return nil, nil
		}
		return n.methods, map[string]string{}
	}
	if next := n.fixed[unescape(path[0])]; next != nil {
		if methods, values := next.find(path[1:]); methods != nil {
			return methods, values
		}
	}
	if n.variable != nil {
		if methods, values := n.variable.find(path[1:]); methods != nil {
			values[n.name] = unescape(path[0])
			return methods, values
		}
	}
	if n.rest != nil && n.rest.methods != nil {
		return n.rest.methods, map[string]string{n.restName: unescape(strings.Join(path, "/"))}
	}
	return nil, nil
}

func unescape(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}
