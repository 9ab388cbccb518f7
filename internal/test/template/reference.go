package template

import (
	"maps"
	"slices"
	"strings"
)

// nameProperty is the property that names a resource of a type.
var nameProperty = map[string]string{
	typeFunction: "FunctionName", typeMachine: "Name", typeTable: "TableName", "AWS::Logs::LogGroup": "LogGroupName", "AWS::SQS::Queue": "QueueName",
	"AWS::ECS::Cluster": "ClusterName", "AWS::ECR::Repository": "RepositoryName", "AWS::CodeBuild::Project": "Name", "AWS::IAM::Role": "RoleName",
}

// arns are the ARNs of resources after "arn:<partition>:".
var arns = map[string]string{
	typeFunction:              "lambda:{region}:{account}:function:{name}",
	typeMachine:               "states:{region}:{account}:stateMachine:{name}",
	typeTable:                 "dynamodb:{region}:{account}:table/{name}",
	"AWS::KMS::Key":           "kms:{region}:{account}:key/{name}",
	"AWS::Logs::LogGroup":     "logs:{region}:{account}:log-group:{name}:*",
	"AWS::SQS::Queue":         "sqs:{region}:{account}:{name}",
	"AWS::ECS::Cluster":       "ecs:{region}:{account}:cluster/{name}",
	"AWS::ECR::Repository":    "ecr:{region}:{account}:repository/{name}",
	"AWS::CodeBuild::Project": "codebuild:{region}:{account}:project/{name}",
	"AWS::IAM::Role":          "iam::{account}:role/{name}",
}

// Dependencies returns for each resource the resources that CloudFormation has to make before
// it: the resources to which its properties refer and, for the resources that SAM makes of it,
// its integrations and authorizers. A function does not wait for the API whose routes it
// serves; the API waits for the function's alias. An alias is a resource of its own, "Work.Alias",
// because it waits for the alarms of a deployment, and these for versions of functions.
func (t *Template) Dependencies() map[string][]string {
	all := map[string]map[string]bool{}
	for name := range t.Resources {
		all[name] = map[string]bool{}
	}
	for name, resource := range t.Resources {
		properties := maps.Clone(resource.Properties)
		kind, _ := strings.CutPrefix(resource.Type, "AWS::Serverless::")
		globals := maps.Clone(t.globals[kind])
		if resource.Type == typeFunction {
			called := name
			if t.alias(resource) != "" {
				called += aliasSuffix
				all[called] = map[string]bool{name: true}
			}
			for _, members := range []map[string]any{globals, properties} {
				for _, other := range t.references(members["DeploymentPreference"]) {
					all[called][other] = true
				}
				delete(members, "DeploymentPreference")
			}
			for _, api := range t.references(properties["Events"]) {
				if t.Resources[api].Type == typeAPI {
					all[api][called] = true
				}
			}
			delete(properties, "Events")
		}
		properties["globals"] = globals
		for _, other := range append(t.references(properties), resource.DependsOn...) {
			all[name][other] = true
		}
	}
	dependencies := map[string][]string{}
	for name, others := range all {
		dependencies[name] = slices.Sorted(maps.Keys(others))
	}
	return dependencies
}

// alias returns the name of a function's alias, "" for none.
func (t *Template) alias(function Resource) string {
	return scalar(merge(t.globals["Function"], function.Properties)["AutoPublishAlias"])
}

// aliasSuffix follows a function's logical id where its alias is meant.
const aliasSuffix = ".Alias"

// references returns the logical ids of the resources that a value refers to, sorted.
func (t *Template) references(value any) []string {
	found := map[string]bool{}
	t.collect(value, found)
	return slices.Sorted(maps.Keys(found))
}

func (t *Template) collect(value any, found map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range named(v) {
			id, _, _ := strings.Cut(strings.TrimSpace(name), ".")
			if _, ok := t.Resources[id]; ok && name == id+aliasSuffix {
				found[name] = true
			} else if ok {
				found[id] = true
			}
		}
		for _, member := range v {
			t.collect(member, found)
		}
	case []any:
		for _, item := range v {
			t.collect(item, found)
		}
	}
}

// named returns the names to which an intrinsic function refers, with the attribute after a
// dot.
func named(v map[string]any) []string {
	name, argument, ok := call(v)
	text, _ := argument.(string)
	if parts, isList := argument.([]any); isList && len(parts) > 0 {
		text = scalar(parts[0])
	}
	switch {
	case ok && (name == "Ref" || name == "Fn::GetAtt"):
		return []string{text}
	case ok && name == "Fn::Sub":
		var names []string
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
		return names
	default:
		return nil
	}
}
