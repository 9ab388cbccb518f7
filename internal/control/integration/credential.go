package integration

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Credential is the user and token with which a workspace clones https URLs of a git host. No
// read returns the token.
type Credential struct {
	Ref
	// Host is in lower case, with its port unless the port is the default port of https.
	Host, User       string
	Created, Updated time.Time
}

const (
	kindCredential = "git_credential"
	attrHost       = "host"
	attrUser       = "user"

	maxHost  = 261 // a name and a port
	maxUser  = 256
	maxToken = 8 << 10
)

func (r Ref) credentialKey() table.Key { return keys.GitCredential(r.Workspace, r.Integration) }

func (r Ref) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: r.Integration}
}

func decodeCredential(workspace string, item *table.Item) (Credential, error) {
	r := record.Read(item, kindCredential)
	c := Credential{Ref: Ref{workspace, item.Key.SK}, Host: item.Text(attrHost), User: item.Text(attrUser), Created: r.Created(), Updated: r.Updated()}
	return c, r.Err()
}

// NewCredential is the request to create a Credential.
type NewCredential struct {
	Workspace, Host, User, Token string
}

// CreateCredential stores credentials. Credentials that cannot be used are a fault.Invalid.
func (s *Service) CreateCredential(ctx context.Context, request NewCredential, notes ...record.Note[Credential]) (Credential, error) {
	host, ok := parseHost(request.Host)
	if !ok {
		return Credential{}, fault.New(fault.Invalid, "host must be the name of a git host, with a port if it is not https's own, as git.example.com:8443.")
	}
	if err := cmp.Or(checkUser(request.User), checkToken(request.Token)); err != nil {
		return Credential{}, err
	}
	now := s.now()
	c := Credential{Ref: Ref{request.Workspace, id.New(now)}, Host: host, User: request.User, Created: now, Updated: now}
	sealed, err := s.sealer.Seal(ctx, c.bound(), []byte(request.Token))
	if err != nil {
		return Credential{}, fmt.Errorf("seal credential: %w", err)
	}
	o := record.Write(
		record.New(c.credentialKey(), kindCredential, now, table.Attrs{attrHost: host, attrUser: c.User}, sealed),
		audit.New(ctx, audit.CreateIntegration, c.Integration, host).Write(c.Workspace, now),
	)
	return record.CommitNew(ctx, s.table, o, c, notes...)
}

// parseHost returns the normalized form of a host.
func parseHost(text string) (string, bool) {
	u, err := url.Parse("https://" + text)
	if err != nil || len(text) > maxHost || u.Hostname() == "" || u.Host != text || u.User != nil || strings.ContainsFunc(text, unicode.IsSpace) {
		return "", false
	}
	return plainHost(u), true
}

// checkUser and checkToken refuse values that cannot be passed to git. Git reads credentials
// line by line, as "user:password".
func checkUser(user string) error {
	if user == "" || len(user) > maxUser || strings.Contains(user, ":") || strings.ContainsFunc(user, unicode.IsControl) {
		return fault.New(fault.Invalid, "user must have 1 to %d bytes, with neither control characters nor a colon.", maxUser)
	}
	return nil
}

func checkToken(token string) error {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, unicode.IsControl) {
		return fault.New(fault.Invalid, "token must have 1 to %d bytes, without control characters.", maxToken)
	}
	return nil
}

// GetCredential returns credentials without their token; unknown credentials are a
// fault.NotFound.
func (s *Service) GetCredential(ctx context.Context, ref Ref) (Credential, error) {
	return record.One(ctx, s.table, "credential", ref.credentialKey(), notFound(ref), record.In(ref.Workspace, decodeCredential))
}

// CredentialPage returns a page of a workspace's credentials, oldest first.
func (s *Service) CredentialPage(ctx context.Context, workspace string, window record.Window) (record.Page[Credential], error) {
	return record.List(ctx, s.table, "credentials", keys.GitCredentials(workspace), window, func(item *table.Item) (Credential, bool, error) {
		c, err := decodeCredential(workspace, item)
		return c, true, err
	})
}

// CredentialPatch is a request to change credentials. A nil member changes nothing. The host
// never changes, because deployments name the credentials for their host.
type CredentialPatch struct{ User, Token *string }

// PatchCredential gives credentials another user or token, for example a renewed token.
func (s *Service) PatchCredential(ctx context.Context, ref Ref, patch CredentialPatch) (Credential, error) {
	now := s.now()
	change := record.Change(ref.credentialKey(), now, nil, table.Cond{})
	if patch.User != nil {
		if err := checkUser(*patch.User); err != nil {
			return Credential{}, err
		}
		change.Set[attrUser] = *patch.User
	}
	if patch.Token != nil {
		if err := checkToken(*patch.Token); err != nil {
			return Credential{}, err
		}
		var err error
		if change.Body, err = s.sealer.Seal(ctx, ref.bound(), []byte(*patch.Token)); err != nil {
			return Credential{}, fmt.Errorf("seal credential: %w", err)
		}
	}
	c, err := s.GetCredential(ctx, ref)
	if err != nil || patch == (CredentialPatch{}) {
		return c, err
	}
	var o record.Outbox
	o.AddOr(change, record.Always(notFound(ref)))
	o.Add(audit.New(ctx, audit.UpdateIntegration, ref.Integration, c.Host).Write(ref.Workspace, now))
	if err := record.Commit(ctx, s.table, o); err != nil {
		return Credential{}, err
	}
	return s.GetCredential(ctx, ref)
}

// DeleteCredential erases credentials. Credentials with which a deployment is built are a
// fault.Conflict.
func (s *Service) DeleteCredential(ctx context.Context, ref Ref) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		item, err := record.Get(ctx, s.table, "credential", ref.credentialKey(), notFound(ref))
		if err != nil {
			return record.Outbox{}, err
		}
		return record.Write(
			table.Delete{Key: ref.credentialKey(), If: unchanged(item.Int(record.Version))},
			audit.New(ctx, audit.DeleteIntegration, ref.Integration, item.Text(attrHost)).Write(ref.Workspace, s.now()),
		), s.mustBeUnused(ctx, ref)
	})
}

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindCredential: func(item *table.Item) (secret.Bound, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return Ref{workspace, item.Key.SK}.bound(), err
	},
}
