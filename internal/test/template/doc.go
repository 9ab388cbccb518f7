// Package template reads template.yaml, the AWS SAM template of the project, as Go values: the
// parts of the stack for given parameters. Tools that run the same functions on one machine
// take their routes, environments and limits from it, and tests compare the template with the
// rest of the source tree.
//
// Load gives a Template, which still has parameters, conditions and intrinsic functions in it.
// Resolve gives a Stack, in which they are replaced: resources whose condition is false are
// gone, and references to other resources are replaced by CloudFormation's value. If only a
// real account could know this value, Resolve uses the value in Values, or a stand-in.
//
//	t, err := template.Load("template.yaml")
//	values := template.Values{Parameters: map[string]string{"Architecture": "x86_64"}}
//	stack, err := t.Resolve(values)
//	for _, route := range stack.Routes { ... route.Path, route.Method, route.Function ... }
//	stack.Functions["Threads"].Environment["SLIPWAY_TABLE"]
//
// The package understands only the features that the project's template uses; anything else is
// an error that names the feature. A library that passes over what it does not know would let a
// test compare the source tree with another stack than the deployed one.
package template
