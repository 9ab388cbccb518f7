package controlplane_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
)

// valueShape describes the error in a value; it returns "" if the value is correct.
type valueShape func(value any) string

func text(value any) string {
	if _, ok := value.(string); !ok {
		return fmt.Sprintf("%v is not a string", value)
	}
	return ""
}

func boolean(value any) string {
	if _, ok := value.(bool); !ok {
		return fmt.Sprintf("%v is not a boolean", value)
	}
	return ""
}

func integer(value any) string {
	number, ok := value.(json.Number)
	if _, err := number.Int64(); !ok || err != nil {
		return fmt.Sprintf("%v is not an integer", value)
	}
	return ""
}

func uuid(value any) string {
	if s, _ := value.(string); !id.Valid(s) {
		return fmt.Sprintf("%v is not a UUID", value)
	}
	return ""
}

func dateTime(value any) string {
	s, _ := value.(string)
	if _, err := time.Parse(time.RFC3339Nano, s); err != nil || !strings.HasSuffix(s, "Z") {
		return fmt.Sprintf("%v is not a time in UTC", value)
	}
	return ""
}

func anyObject(value any) string {
	if _, ok := value.(map[string]any); !ok {
		return fmt.Sprintf("%v is not an object", value)
	}
	return ""
}

func oneOf(values string) valueShape {
	return func(value any) string {
		if s, _ := value.(string); !slices.Contains(strings.Fields(values), s) {
			return fmt.Sprintf("%v is none of %s", value, values)
		}
		return ""
	}
}

func orNull(of valueShape) valueShape {
	return func(value any) string {
		if value == nil {
			return ""
		}
		return of(value)
	}
}

func listOf(of valueShape) valueShape {
	return func(value any) string {
		items, ok := value.([]any)
		if !ok {
			return fmt.Sprintf("%v is not an array", value)
		}
		for i, item := range items {
			if wrong := of(item); wrong != "" {
				return fmt.Sprintf("[%d]: %s", i, wrong)
			}
		}
		return ""
	}
}

// members is an object with exactly these members.
func members(of map[string]valueShape) valueShape {
	return func(value any) string {
		o, ok := value.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v is not an object", value)
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			member, present := o[name]
			if !present {
				return name + " is missing"
			}
			if wrong := of[name](member); wrong != "" {
				return name + ": " + wrong
			}
		}
		for name := range o {
			if of[name] == nil {
				return name + " is not in the interface"
			}
		}
		return ""
	}
}

// also returns members and further texts.
func also(of map[string]valueShape, further ...string) map[string]valueShape {
	of = maps.Clone(of)
	for _, name := range further {
		of[name] = text
	}
	return of
}

// The field tables of the interface. Optional members are always shown, as null.
var (
	secretShape = members(map[string]valueShape{"name": text, "value": text})

	sourceConfigShape = members(map[string]valueShape{
		"integration_id": orNull(uuid), "repo_url": orNull(text), "deployment_type": orNull(oneOf("dev_free dev prod dev_zero dev_free_zero")),
		"build_on_push": orNull(boolean), "custom_url": orNull(text), "resource_spec": orNull(anyObject), "listener_id": orNull(uuid),
		"listener_config": orNull(members(map[string]valueShape{"k8s_namespace": orNull(text)})),
		"install_command": orNull(text), "build_command": orNull(text),
	})

	sourceRevisionConfigShape = members(map[string]valueShape{
		"repo_ref": orNull(text), "framework_config_path": orNull(text), "image_uri": orNull(text), "repo_commit_sha": orNull(text),
		"source_tarball_path": orNull(text), "tracked_packages": orNull(listOf(text)),
	})

	sourceShape = oneOf("github external_docker internal_docker internal_source")

	membersOfDeployment = map[string]valueShape{
		"name": text, "source": sourceShape, "source_config": sourceConfigShape, "source_revision_config": sourceRevisionConfigShape,
		"secrets": listOf(secretShape), "id": uuid, "created_at": dateTime, "updated_at": dateTime,
		"status":             oneOf("AWAITING_DATABASE READY UNUSED AWAITING_DELETE UNKNOWN"),
		"latest_revision_id": orNull(uuid), "active_revision_id": orNull(uuid), "image_version": orNull(text),
		"tenant_id": uuid,
	}
	deploymentShape = members(membersOfDeployment)
	// tieredShape and dedicatedShape are for deployments with a compute tier, and with a tier
	// for the database too.
	tieredShape    = members(also(membersOfDeployment, "compute_tier"))
	dedicatedShape = members(also(membersOfDeployment, "compute_tier", "database_tier"))

	revisionShape = members(map[string]valueShape{
		"id": uuid, "created_at": dateTime, "updated_at": dateTime, "source": sourceShape, "source_revision_config": sourceRevisionConfigShape,
		"status": oneOf(`CREATING QUEUED AWAITING_BUILD BUILDING AWAITING_DEPLOY DEPLOYING CREATE_FAILED BUILD_FAILED DEPLOY_FAILED
			DEPLOYED SKIPPED INTERRUPTED UNKNOWN`),
		"status_reason": orNull(text), "status_message": orNull(text), "phase_timestamps": mapOf(dateTime),
		"build": orNull(members(map[string]valueShape{
			"commit_sha": orNull(text), "source_digest": orNull(text), "builder": orNull(text), "language": orNull(text), "language_version": orNull(text),
			"dependencies_digest": orNull(text), "base_image": orNull(text), "image": orNull(text),
		})),
	})

	tracingProjectShape = members(map[string]valueShape{
		"id": uuid, "name": text, "deployment_id": orNull(uuid), "created_at": dateTime, "updated_at": dateTime,
	})

	deletedShape = members(map[string]valueShape{
		"deployment_ids": listOf(uuid), "failed": listOf(members(map[string]valueShape{"deployment_id": uuid, "reason": text, "detail": text})),
	})

	errorShape = members(map[string]valueShape{"detail": text})

	validationErrorShape = members(map[string]valueShape{"detail": listOf(members(map[string]valueShape{
		"loc": listOf(func(value any) string {
			if text(value) != "" && integer(value) != "" {
				return fmt.Sprintf("%v is neither a string nor an integer", value)
			}
			return ""
		}),
		"msg": text, "type": text,
	}))})
)

func pageOf(of valueShape) valueShape {
	return members(map[string]valueShape{"resources": listOf(of), "offset": integer, "cursor": orNull(text)})
}

// mapOf checks each member of an object, whatever its name is.
func mapOf(of valueShape) valueShape {
	return func(value any) string {
		o, ok := value.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v is not an object", value)
		}
		for name, member := range o {
			if wrong := of(member); wrong != "" {
				return name + ": " + wrong
			}
		}
		return ""
	}
}

func empty(value any) string {
	if value != nil {
		return fmt.Sprintf("there is a body: %v", value)
	}
	return ""
}

func wantShape(t *testing.T, r response, shape valueShape) {
	t.Helper()
	if wrong := shape(r.body); wrong != "" {
		t.Errorf("%s %s answered %s\n%s", r.Request.Method, r.Request.URL.Path, r.text, wrong)
	}
	if contentType := r.Header.Get("Content-Type"); r.body != nil && contentType != "application/json" {
		t.Errorf("%s %s: Content-Type %q", r.Request.Method, r.Request.URL.Path, contentType)
	}
}

// wantError checks an error answer of any status.
func wantError(t *testing.T, r response, status int) {
	t.Helper()
	wantStatus(t, r, status)
	if status == http.StatusUnprocessableEntity {
		wantShape(t, r, validationErrorShape)
		return
	}
	wantShape(t, r, errorShape)
}
