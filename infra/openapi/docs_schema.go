//go:build ignore

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// object is an object of the document, with its members in the order in which they were written. A nil one is empty.
type object struct {
	names   []string
	members map[string]any
}

func (o *object) object(name string) *object {
	if o == nil {
		return &object{}
	}
	if member, ok := o.members[name].(*object); ok {
		return member
	}
	return &object{}
}

func (o *object) list(name string) []any {
	list, _ := o.members[name].([]any)
	return list
}

func (o *object) text(name string) string {
	text, _ := o.members[name].(string)
	return strings.TrimSpace(text)
}

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := json.Marshal(name)
		value, err := json.Marshal(o.members[name])
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func (o *object) set(name string, value any) {
	if o.members == nil {
		o.members = map[string]any{}
	}
	if _, there := o.members[name]; !there {
		o.names = append(o.names, name)
	}
	o.members[name] = value
}

// decode reads a node. Members whose names begin with "x-" speak to the generator of handlers and are left out.
func decode(node *yaml.Node) any {
	switch node.Kind {
	case yaml.MappingNode:
		o := &object{members: map[string]any{}}
		for i := 0; i < len(node.Content); i += 2 {
			if name := node.Content[i].Value; !strings.HasPrefix(name, "x-") {
				o.set(name, decode(node.Content[i+1]))
			}
		}
		return o
	case yaml.SequenceNode:
		items := make([]any, len(node.Content))
		for i, item := range node.Content {
			items[i] = decode(item)
		}
		return items
	case yaml.AliasNode:
		return decode(node.Alias)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		panic(err)
	}
	return value
}

type document struct{ root *object }

// follow returns the object that a value is or refers to.
func (d *document) follow(value any) *object {
	o, _ := value.(*object)
	if o == nil {
		return &object{}
	}
	ref, ok := o.members["$ref"].(string)
	if !ok {
		return o
	}
	target := d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		target = target.object(part)
	}
	if len(target.names) == 0 {
		panic("reference " + ref + " leads nowhere")
	}
	return d.follow(target)
}

func refName(value any) string {
	o, _ := value.(*object)
	if o == nil {
		return ""
	}
	name, ok := strings.CutPrefix(o.text("$ref"), "#/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

// typeOf describes a schema in a line.
func (d *document) typeOf(value any) template.HTML {
	if name := refName(value); name != "" {
		return template.HTML(fmt.Sprintf(`<a href="#schema-%s">%s</a>`, name, name))
	}
	o, _ := value.(*object)
	if o == nil || len(o.names) == 0 {
		return "any value"
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if choices := o.list(word); choices != nil {
			var parts []string
			for _, choice := range choices {
				parts = append(parts, string(d.typeOf(choice)))
			}
			return template.HTML(strings.Join(parts, map[string]string{"allOf": " and "}[word]+map[bool]string{true: "", false: " or "}[word == "allOf"]))
		}
	}
	var parts []string
	for _, name := range typeNames(o) {
		switch name {
		case "array":
			parts = append(parts, "list of "+string(d.typeOf(o.members["items"])))
		case "object":
			if extra := o.members["additionalProperties"]; extra != nil && len(o.object("properties").names) == 0 {
				parts = append(parts, "object of "+string(d.typeOf(extra)))
			} else {
				parts = append(parts, "object")
			}
		default:
			parts = append(parts, escape(name))
		}
	}
	text := strings.Join(parts, " or ")
	if rules := rules(o); rules != "" {
		text += ` <span class="rules">` + rules + "</span>"
	}
	return template.HTML(text)
}

func typeNames(o *object) []string {
	if one := o.text("type"); one != "" {
		return []string{one}
	}
	var names []string
	for _, name := range o.list("type") {
		names = append(names, fmt.Sprint(name))
	}
	if names == nil {
		return []string{"any value"}
	}
	return names
}

// rules are what a schema asks for beyond the type.
func rules(o *object) string {
	var parts []string
	add := func(word, format string) {
		if value, there := o.members[word]; there {
			parts = append(parts, fmt.Sprintf(format, escape(fmt.Sprint(value))))
		}
	}
	add("format", "%s")
	add("minimum", "≥ %s")
	add("exclusiveMinimum", "&gt; %s")
	add("maximum", "≤ %s")
	add("exclusiveMaximum", "&lt; %s")
	add("multipleOf", "multiple of %s")
	add("minLength", "length ≥ %s")
	add("maxLength", "length ≤ %s")
	add("minItems", "items ≥ %s")
	add("maxItems", "items ≤ %s")
	add("pattern", "<code>%s</code>")
	add("default", "default <code>%s</code>")
	if values := o.list("enum"); values != nil {
		var quoted []string
		for _, value := range values {
			quoted = append(quoted, "<code>"+escape(fmt.Sprint(value))+"</code>")
		}
		parts = append(parts, "one of "+strings.Join(quoted, " "))
	}
	return strings.Join(parts, ", ")
}

func (d *document) properties(o *object) []field {
	var fields []field
	properties := o.object("properties")
	for _, name := range properties.names {
		one := properties.object(name)
		fields = append(fields, field{
			Name: name, Required: slices.Contains(o.list("required"), any(name)), Type: d.typeOf(properties.members[name]),
			Description: inline(one.text("description")),
		})
	}
	return fields
}

// deepest is how many schemas an example goes down; further down stands an empty value.
const deepest = 5

// example makes a value of the schema. In a request it holds what is required, and one thing when nothing is; in an answer everything.
func (d *document) example(value any, request bool, above []string) any {
	o := d.follow(value)
	if written, there := o.members["example"]; there {
		return written
	}
	if name := refName(value); name != "" {
		if slices.Contains(above, name) || len(above) > deepest {
			return &object{}
		}
		above = append(slices.Clip(above), name)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if choices := o.list(word); len(choices) > 0 {
			return d.example(choices[0], request, above)
		}
	}
	if values := o.list("enum"); len(values) > 0 {
		return values[0]
	}
	if preset, there := o.members["default"]; there {
		return preset
	}
	return d.exampleOf(typeNames(o)[0], o, request, above)
}

func (d *document) exampleOf(kind string, o *object, request bool, above []string) any {
	switch kind {
	case "object":
		return d.exampleObject(o, request, above)
	case "array":
		return []any{d.example(o.members["items"], request, above)}
	case "integer", "number":
		if least, there := o.members["minimum"]; there {
			return least
		}
		return 1
	case "boolean":
		return true
	case "string":
		return map[string]string{
			"uuid": "0197a000-0000-7000-8000-000000000001", "date-time": "2026-01-31T12:00:00.000000Z", "uri": "https://example.com/path",
		}[o.text("format")] + map[bool]string{true: "text", false: ""}[!slices.Contains([]string{"uuid", "date-time", "uri"}, o.text("format"))]
	}
	return &object{}
}

func (d *document) exampleObject(o *object, request bool, above []string) any {
	made := &object{}
	properties := o.object("properties")
	telling := d.telling(properties)
	for _, name := range properties.names {
		required := slices.Contains(o.list("required"), any(name))
		if request && !required && (len(o.list("required")) > 0 || name != telling) {
			continue
		}
		made.set(name, d.named(name, properties.members[name], request, above))
	}
	return made
}

// telling is the property that shows best what an object of optional ones is for: the last that has members of its own, or else the first.
func (d *document) telling(properties *object) string {
	last := ""
	for _, name := range properties.names {
		one := properties.members[name].(*object)
		for _, choice := range append(one.list("anyOf"), one) {
			if len(d.follow(choice).object("properties").names) > 0 {
				last = name
			}
		}
	}
	if last == "" && len(properties.names) > 0 {
		return properties.names[0]
	}
	return last
}

// named is an example that fits its name, where the schema allows for any text.
func (d *document) named(name string, value any, request bool, above []string) any {
	made := d.example(value, request, above)
	if made != "text" {
		return made
	}
	for part, fitting := range map[string]string{
		"name": "weather", "repo_url": "https://github.com/example/weather.git", "repo_ref": "main", "image": "registry.example.com/weather:1",
		"assistant_id": "agent", "detail": "A sentence that says what is wrong.", "msg": "Field required", "type": "missing",
		"repo_commit_sha": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "framework_config_path": "framework.json",
	} {
		if name == part {
			return fitting
		}
	}
	return "text"
}

func indent(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out.Bytes(), "", "  "); err != nil {
		panic(err)
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(pretty.String(), `\u003c`, "<"), `\u003e`, ">"), `\u0026`, "&"))
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func escape(text string) string { return template.HTMLEscapeString(text) }

// inline sets `code` in a line of text.
func inline(text string) template.HTML {
	parts := strings.Split(text, "`")
	for i := range parts {
		parts[i] = escape(parts[i])
		if i%2 == 1 && i < len(parts)-1 {
			parts[i] = "<code>" + parts[i] + "</code>"
		}
	}
	return template.HTML(strings.Join(parts, ""))
}

// prose sets paragraphs and lists.
func prose(text string) template.HTML {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraph = strings.TrimSpace(paragraph)
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, "- "):
			out.WriteString("<ul>")
			for item := range strings.SplitSeq("\n"+paragraph, "\n- ") {
				if item = strings.TrimSpace(item); item != "" {
					out.WriteString("<li>" + string(inline(item)) + "</li>")
				}
			}
			out.WriteString("</ul>")
		default:
			out.WriteString("<p>" + string(inline(paragraph)) + "</p>")
		}
	}
	return template.HTML(out.String())
}
