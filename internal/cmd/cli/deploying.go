package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/dotenv"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// The sources that the command deploys from.
const (
	fromUpload     = "internal_source"
	fromRepository = "github"
)

// deploying is one deployment of a plan.
type deploying struct {
	plan
	api  *api
	show func(output.Event)
	// deployment is the deployment in its present state.
	deployment deployment
	// digest is the digest of the packed files.
	digest string
	// waiting describes the current work of the server.
	waiting string
}

// run deploys and reports the result.
func (d *deploying) run(ctx context.Context) error { return d.within(ctx, d.limit, d.deploy) }

// within runs do with a time limit and reports the result.
func (d *deploying) within(ctx context.Context, limit time.Duration, do func(context.Context) (output.Event, error)) error {
	d.waiting = "the server is still asked"
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := do(limited)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("%w%s", exit.ErrInterrupted, d.goesOn())
	case limited.Err() != nil:
		err = fmt.Errorf("%w%s", &exit.TimeoutError{Waiting: d.waiting, Limit: limit}, d.goesOn())
	}
	result.Kind, result.Deployment, result.Name = output.KindResult, d.deployment.ID, d.name
	if result.Status = "succeeded"; err != nil {
		result.Status, result.Text, result.URL = "failed", err.Error(), ""
	}
	d.show(result)
	return err
}

// goesOn returns a text that says how to watch a rollout for which the command does not wait.
func (d *deploying) goesOn() string {
	if d.deployment.Latest == "" {
		return ""
	}
	return "; the rollout goes on: slipway deployments show " + d.name
}

// deploy executes the plan. The event describes the result.
func (d *deploying) deploy(ctx context.Context) (result output.Event, err error) {
	existing, exists, err := d.api.named(ctx, d.name)
	if err != nil {
		return result, err
	}
	if d.deployment = existing; exists {
		if err := d.fits(); err != nil {
			return result, err
		}
	}
	revision, err := d.revise(ctx, exists)
	if err != nil || d.dry {
		return result, err
	}
	result.Revision, result.URL = d.deployment.Latest, d.deployment.SourceConfig.URL
	if revision == "" {
		result.Text = "nothing has changed since revision " + d.deployment.Latest + ", which serves"
		return result, nil
	}
	if d.noWait {
		d.show(output.Event{Kind: output.KindDeployment, Deployment: d.deployment.ID, Revision: revision, Name: d.name})
		result.Text = "the revision is not waited for"
		return result, nil
	}
	return d.await(ctx, revision)
}

// await waits until a revision serves.
func (d *deploying) await(ctx context.Context, revision string) (result output.Event, err error) {
	result.Revision, result.URL = revision, d.deployment.SourceConfig.URL
	d.show(output.Event{Kind: output.KindDeployment, Deployment: d.deployment.ID, Revision: revision, Name: d.name})
	w := &watching{deploying: d, address: d.deployment.revision(revision)}
	if err := w.end(ctx); err != nil {
		w.describe(&result)
		return result, err
	}
	result.Text = w.took()
	return result, nil
}

// fits returns an error unless the plan may change the deployment with this name.
func (d *deploying) fits() error {
	switch {
	case d.deployment.Status == statusDeleted:
		return fmt.Errorf("the deployment %s is being deleted; choose another --name, or wait until it is gone", d.name)
	case d.repo == "" && d.deployment.Source != fromUpload:
		return fmt.Errorf("the deployment %s is not made of uploads, but of %s%s: deploy it with --repo, or choose another --name",
			d.name, d.deployment.Source, with(" ", d.deployment.SourceConfig.RepoURL))
	case d.repo != "" && d.deployment.Source != fromRepository:
		return fmt.Errorf("the deployment %s is made of %s, not of a repository: deploy it without --repo, or choose another --name", d.name, d.deployment.Source)
	case d.repo != "" && d.deployment.SourceConfig.RepoURL != d.repo:
		return fmt.Errorf("the deployment %s is made of the repository %s, which cannot be changed: choose another --name", d.name, d.deployment.SourceConfig.RepoURL)
	}
	return nil
}

func with(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// revise makes the deployment or changes it, and returns its new revision, or "" if no
// revision is needed.
func (d *deploying) revise(ctx context.Context, exists bool) (string, error) {
	if d.repo != "" {
		return d.reviseRepository(ctx, exists)
	}
	packed, err := pack(ctx, d.dir)
	if err != nil {
		return "", exit.Usage(err)
	}
	revision, err := d.reviseUpload(ctx, exists, packed)
	return revision, errors.Join(err, packed.remove())
}

func (d *deploying) reviseRepository(ctx context.Context, exists bool) (string, error) {
	d.show(output.Event{Kind: output.KindRepository, URL: d.repo, Ref: d.ref})
	config := map[string]any{"repo_ref": d.ref}
	// Without a path, the server keeps its present path, or looks for the file by itself.
	if d.config != "" {
		config["framework_config_path"] = d.config
	} else if kept := d.deployment.RevisionConfig.ConfigPath; exists && kept != "" && kept != defaultConfig {
		d.show(output.Event{Kind: output.KindNote, Text: fmt.Sprintf("the configuration file is %s, as before; for the one at the root: --config %s", kept, defaultConfig)})
	}
	if d.dry {
		d.say(exists, "of the repository")
		return "", nil
	}
	if !exists {
		return d.create(ctx, fromRepository, map[string]any{"repo_url": d.repo}, config)
	}
	return d.patch(ctx, config)
}

func (d *deploying) reviseUpload(ctx context.Context, exists bool, packed *tarball) (string, error) {
	d.digest = packed.digest
	text := fmt.Sprintf("%d files, %s, %s", packed.files, size(packed.size), d.config)
	d.show(output.Event{Kind: output.KindUpload, Text: text})
	d.noteLeft()
	same, err := d.unchanged(ctx, packed)
	switch {
	case err != nil || same && !d.dry:
		return "", err
	case same:
		d.show(output.Event{Kind: output.KindNote, Text: "nothing has changed since revision " + d.deployment.Latest + ": no revision would be made"})
		return "", nil
	case d.dry:
		d.say(exists, "of the upload")
		return "", nil
	}
	if !exists {
		if _, err := d.create(ctx, fromUpload, map[string]any{}, map[string]any{}); err != nil {
			return "", err
		}
	}
	path, err := d.upload(ctx, packed)
	if err != nil {
		return "", err
	}
	return d.patch(ctx, map[string]any{"source_tarball_path": path, "framework_config_path": d.config})
}

// noteLeft says that the .env file stays here, if it names variables that are no secrets of the
// deployment: the agent would miss them.
func (d *deploying) noteLeft() {
	file := filepath.Join(d.dir, ".env")
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	var missing []string
	variables, _ := dotenv.Parse(string(text))
	secrets := d.merged()
	for _, v := range variables {
		if !slices.ContainsFunc(secrets, func(s secret) bool { return s.Name == v.Name }) {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) > 0 {
		d.show(output.Event{Kind: output.KindNote, Text: fmt.Sprintf("%s is not uploaded, and the deployment has no %s; to make its lines secrets: --env-file %s",
			file, strings.Join(missing, ", "), file)})
	}
}

// say shows what a dry run would do.
func (d *deploying) say(exists bool, of string) {
	text := "the deployment " + d.name + " would be made, with a revision " + of
	if exists {
		text = "the deployment " + d.name + " would get a new revision " + of
	}
	for _, s := range d.values {
		text += ", the secret " + s.Name
	}
	d.show(output.Event{Kind: output.KindNote, Text: text})
}

// unchanged reports whether the serving revision was made of the same files and settings.
func (d *deploying) unchanged(ctx context.Context, packed *tarball) (bool, error) {
	if d.force || d.deployment.Active == "" || d.deployment.Active != d.deployment.Latest || d.deployment.RevisionConfig.ConfigPath != d.config {
		return false, nil
	}
	for _, s := range d.values {
		if !slices.Contains(d.deployment.Secrets, s) {
			return false, nil
		}
	}
	var active revision
	err := d.api.do(ctx, http.MethodGet, d.deployment.revision(d.deployment.Active), nil, &active)
	return err == nil && active.Build.SourceDigest == packed.digest, err
}

// create makes the deployment, and returns its first revision, or "" if it has no revision
// yet.
func (d *deploying) create(ctx context.Context, source string, config, revision map[string]any) (string, error) {
	err := d.api.do(ctx, http.MethodPost, "/v2/deployments", map[string]any{
		"name": d.name, "source": source, "source_config": config, "source_revision_config": revision, "secrets": d.merged(),
	}, &d.deployment)
	return d.deployment.Latest, err
}

// patch changes the deployment, and returns its new revision.
func (d *deploying) patch(ctx context.Context, revision map[string]any) (string, error) {
	body := map[string]any{"source_revision_config": revision}
	if len(d.values) > 0 {
		body["secrets"] = d.merged()
	}
	err := d.api.do(ctx, http.MethodPatch, d.deployment.path(), body, &d.deployment)
	return d.deployment.Latest, err
}

// merged returns the existing secrets together with the secrets of the plan. A value that the
// server does not show stays unchanged if the shown text is sent back.
func (d *deploying) merged() []secret {
	all := append([]secret{}, d.deployment.Secrets...)
	for _, s := range d.values {
		at := slices.IndexFunc(all, func(other secret) bool { return other.Name == s.Name })
		if at < 0 {
			all = append(all, s)
		} else {
			all[at] = s
		}
	}
	return all
}

// upload uploads the tarball, and returns its path in the interface. An interrupted upload
// starts again, at a new address. Uploads may go to another server than other requests, so answers
// to those give no hope for an upload.
func (d *deploying) upload(ctx context.Context, packed *tarball) (string, error) {
	var storage contact
	for try := 1; ; try++ {
		var granted struct {
			URL     string            `json:"upload_url"`
			Path    string            `json:"object_path"`
			Headers map[string]string `json:"upload_headers"`
		}
		if err := d.api.do(ctx, http.MethodPost, d.deployment.path()+"/upload-url", map[string]any{"supports_upload_headers": true}, &granted); err != nil {
			return "", err
		}
		err := d.api.Put(ctx, granted.URL, io.NewSectionReader(packed.file, 0, packed.size), packed.size, granted.Headers)
		if err == nil {
			d.api.answered = time.Now()
			return granted.Path, nil
		}
		if _, refused := errors.AsType[*client.APIError](err); refused && storage.answered.IsZero() {
			storage.answered = time.Now()
		}
		if ctx.Err() != nil || !isPassing(err) || !storage.hopeful(err, try) || !clock.Sleep(ctx, reconnectPause) {
			return "", fmt.Errorf("upload the directory: %w", err)
		}
	}
}
