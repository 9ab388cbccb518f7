package template

import (
	"fmt"
	"net/url"
	"strings"
)

// anyMethod is the method of routes that accept all methods.
const anyMethod = "ANY"

// Router finds the route of a request as API Gateway does: the closest match of the whole path
// wins, a literal segment before a variable, and a variable before {proxy+}.
type Router struct{ root node }

// NewRouter makes a router. It refuses the same errors as API Gateway: an authorizer that does
// not exist, a route that is declared twice, and two variables in one place of the path.
func NewRouter(routes []Route, authorizers map[string]Authorizer) (*Router, error) {
	r := &Router{}
	for _, route := range routes {
		if err := r.root.add(route, authorizers); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Find returns the route of a request and the values of the variables in its path, and whether
// there is a route. path is escaped.
func (r *Router) Find(method, path string) (Route, map[string]string, bool) {
	methods, parameters := r.root.find(segments(path))
	route, ok := methods[method]
	if !ok {
		route, ok = methods[anyMethod]
	}
	return route, parameters, ok
}

// node is a resource of the API: one segment of a path, and the resources below it.
type node struct {
	// fixed are the resources below literal segments.
	fixed map[string]*node
	// variable is the resource below a segment like {name}, which matches exactly one segment
	// of any text.
	variable *node
	name     string
	// rest is the resource of a segment like {proxy+}, which matches one or more segments.
	rest     *node
	restName string
	// methods are the routes of the path that ends here.
	methods map[string]Route
}

// segments splits a path; a slash at its end is ignored.
func segments(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func (n *node) add(route Route, authorizers map[string]Authorizer) error {
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
		at.methods = map[string]Route{}
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
		if n.variable != nil {
			return nil, fmt.Errorf("{%s+} stands beside the variable {%s}", rest, n.name)
		}
		if n.rest == nil {
			n.rest, n.restName = &node{}, rest
		}
		return n.rest, sameName(n.restName, rest)
	case isVariable:
		if n.rest != nil {
			return nil, fmt.Errorf("the variable {%s} stands beside {%s+}", name, n.restName)
		}
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

// sameName refuses one variable with two names, as API Gateway does.
func sameName(one, other string) error {
	if one != other {
		return fmt.Errorf("the variable {%s} is called {%s} by another route", other, one)
	}
	return nil
}

// find returns the routes of the resource that is the closest match, and the values of the
// variables.
func (n *node) find(path []string) (map[string]Route, map[string]string) {
	if len(path) == 0 {
		if n.methods == nil {
			return nil, nil
		}
		return n.methods, map[string]string{}
	}
	if next := n.fixed[plain(path[0])]; next != nil {
		if methods, values := next.find(path[1:]); methods != nil {
			return methods, values
		}
	}
	if n.variable != nil {
		if methods, values := n.variable.find(path[1:]); methods != nil {
			values[n.name] = plain(path[0])
			return methods, values
		}
	}
	if n.rest != nil && n.rest.methods != nil {
		return n.rest.methods, map[string]string{n.restName: plain(strings.Join(path, "/"))}
	}
	return nil, nil
}

func plain(segment string) string {
	if unescaped, err := url.PathUnescape(segment); err == nil {
		return unescaped
	}
	return segment
}
