// Package template reads template.yaml, the AWS SAM template of the project, as Go values: what the
// stack would consist of for given parameters. Tools that run the same functions on one machine
// take their routes, environments and limits from it, and tests hold the template to the rest of
// the source tree.
//
// Load gives a Template, which still has parameters, conditions and intrinsic functions in it.
// Resolve gives a Stack, in which they are replaced: resources whose condition is false are gone,
// references to others are what CloudFormation would put there or, where only a real account could
// know, what Values says or a stand-in.
//
//	t, err := template.Load("template.yaml")
//	values := template.Values{Parameters: map[string]string{"Architecture": "x86_64"}}
//	stack, err := t.Resolve(values)
//	for _, route := range stack.Routes { ... route.Path, route.Method, route.Function ... }
//	stack.Functions["Threads"].Environment["SLIPWAY_TABLE"]
//
// Only what the project's template uses is understood; anything else is an error that names it.
package template
