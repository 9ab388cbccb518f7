package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const loginLong = `Sign in at the OpenID Connect issuer that the server names (slipway serve --sign-in). The command
prints an address and a code: open the address in any browser, on this or another machine, and enter
the code there. You get a session with your role as a member of the workspace.

The server is kept as a context, which becomes the current context. With --url this is a new context,
whose name is --context or the host. Otherwise it is the context that --context or $SLIPWAY_CONTEXT
names, or the current context. The session is kept in the keyring of the operating system. If there
is no keyring, or $SLIPWAY_NO_KEYRING is set, the session is kept in the file of the contexts, which
only you can read. Commands renew an expired session, as long as the issuer allows it. slipway logout
ends the session.`

const logoutLong = `End the session of a context at the server, and the sign-in at the issuer, and forget both. The
context stays, without credentials. It is the context that --context or $SLIPWAY_CONTEXT names, or the
current context.`

// codeLimit is how long the code of a device is good if the issuer does not say.
const codeLimit = 15 * time.Minute

func newLogin() *cobra.Command {
	var address, name, workspace string
	var noBrowser bool
	cmd := &cobra.Command{
		Use: "login", Short: "Sign in at the issuer of a server", Long: loginLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			name, saved, err := loginContext(all, address, name)
			if err == nil {
				err = oidc.CheckPrivate(saved.URL)
			}
			if err != nil {
				return exit.Usage(err)
			}
			issuer, err := offered(cmd.Context(), saved.URL)
			if err != nil {
				return err
			}
			answer, err := askPerson(cmd, saved.URL, issuer, !noBrowser)
			if err != nil {
				return err
			}
			granted, c, err := exchange(cmd.Context(), saved.URL, cmp.Or(workspace, saved.Tenant), answer)
			if err != nil {
				return err
			}
			saved = savedServer{URL: saved.URL, Tenant: granted.Workspace, Login: &login{Issuer: issuer.URL, ClientID: issuer.ClientID, User: granted.User}}
			var earlier *ended
			var refused error
			err = changeContexts(cmd.Context(), func(all *contexts) error {
				earlier = all.release(name)
				all.Contexts[name], all.Current = saved, name
				refused = saved.store(name, c)
				return nil
			})
			if err != nil {
				return err
			}
			earlier.endEarlier(cmd, saved.Login)
			if refused != nil {
				if err := sayKept(cmd.ErrOrStderr(), refused); err != nil {
					return err
				}
			}
			return output.Done(cmd, fmt.Sprintf("signed in to %s as %s (%s); %s is the current context", saved.URL, output.Plain(granted.User), granted.Role, name), map[string]any{
				"context": name, "url": saved.URL, "workspace_id": granted.Workspace, "user": granted.User, "role": granted.Role, "expires_at": granted.ExpiresAt, "keyring": refused == nil,
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "url", "", "address of a server")
	flags.StringVar(&name, "context", "", "name of the context ($SLIPWAY_CONTEXT; with --url the default is the host of the address)")
	flags.StringVar(&workspace, "workspace", "", "id or name of the workspace (may be left out by members of one workspace only)")
	flags.BoolVar(&noBrowser, "no-browser", false, "open no browser, only print the address")
	return output.WithJSON(cmd)
}

// loginContext returns the context to sign in to, and its name.
func loginContext(all contexts, address, name string) (string, savedServer, error) {
	if address != "" {
		if err := client.CheckURL("--url", address); err != nil {
			return "", savedServer{}, err
		}
		parsed, _ := url.Parse(address) // CheckURL has parsed it
		name = cmp.Or(name, parsed.Host)
		if known := all.Contexts[name]; known.URL == address {
			return name, known, nil
		}
		return name, savedServer{URL: address}, nil
	}
	return chosenContext(all, name)
}

// chosenContext returns the context of a flag, the environment, or the current one.
func chosenContext(all contexts, name string) (string, savedServer, error) {
	if name = cmp.Or(name, os.Getenv("SLIPWAY_CONTEXT"), all.Current); name == "" {
		return "", savedServer{}, errors.New("there is no context: name the server with --url, or the context with --context")
	}
	saved, ok := all.Contexts[name]
	if !ok {
		return "", savedServer{}, noContext(name)
	}
	return name, saved, nil
}

// offered returns the issuer that a server names.
func offered(ctx context.Context, server string) (signin.Issuer, error) {
	var offer signin.Offer
	err := client.New(client.Server{URL: server}).Call(ctx, http.MethodGet, signin.Path, nil, &offer)
	answer, refused := errors.AsType[*client.APIError](err)
	if refused && answer.Status >= http.StatusInternalServerError || err != nil && !refused {
		return signin.Issuer{}, err
	}
	if refused || offer.Issuer == nil {
		return signin.Issuer{}, fmt.Errorf("the server at %s names no issuer at which people sign in; use an API key: slipway context add NAME --url %s", server, server)
	}
	return *offer.Issuer, nil
}

// askPerson has a person sign in at the issuer with the code of a device (RFC 8628), and waits.
func askPerson(cmd *cobra.Command, server string, issuer signin.Issuer, open bool) (*oauth2.Token, error) {
	at, ctx, err := discover(cmd.Context(), server, issuer.URL)
	if err != nil {
		return nil, err
	}
	if at.DeviceAuthURL == "" {
		return nil, fmt.Errorf("the issuer %s has no sign-in for command lines (RFC 8628)", issuer.URL)
	}
	config := at.Config(issuer.ClientID, "")
	config.Scopes = slices.Concat(issuer.Scopes, at.Lasting)
	code, err := config.DeviceAuth(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin the sign-in at %s: %w", issuer.URL, oidc.Answered(err))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "to sign in at %s, open %s and enter the code %s\n", issuer.URL, output.Plain(code.VerificationURI), output.Plain(code.UserCode))
	if page := cmp.Or(code.VerificationURIComplete, code.VerificationURI); open && output.IsTerminal(cmd.ErrOrStderr()) && oidc.CheckPrivate(page) == nil {
		_ = openBrowser(page) // without a browser the person opens the address
	}
	answer, err := await(ctx, config, code)
	switch {
	case err == nil:
		return answer, nil
	case cmd.Context().Err() != nil:
		return nil, exit.ErrInterrupted
	case !time.Now().Before(code.Expiry):
		return nil, exit.Refused(errors.New("the code was not entered in time; run slipway login again"))
	default:
		return nil, exit.Refused(fmt.Errorf("the issuer %s refuses the sign-in: %w", issuer.URL, err))
	}
}

// await asks the issuer for the answer of the person until there is one. A request that gets no
// answer of the issuer is repeated, after twice the time.
func await(ctx context.Context, config *oauth2.Config, code *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	if code.Expiry.IsZero() {
		code.Expiry = time.Now().Add(codeLimit)
	}
	for {
		answer, err := config.DeviceAccessToken(ctx, code)
		said, ok := errors.AsType[*oauth2.RetrieveError](err)
		if err == nil || ctx.Err() != nil || !time.Now().Before(code.Expiry) {
			return answer, err
		}
		if ok && (said.ErrorCode != "" || said.Response.StatusCode < http.StatusInternalServerError) {
			return nil, oidc.Answered(err)
		}
		code.Interval *= 2
	}
}

func newLogout() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "logout", Short: "End a sign-in, and forget it", Long: logoutLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			name, saved, err := chosenContext(all, name)
			if err != nil {
				return exit.Usage(err)
			}
			var over *ended
			err = changeContext(cmd.Context(), name, func(all *contexts) error {
				if over = all.release(name); over == nil {
					return fmt.Errorf("nobody is signed in to the context %s", name)
				}
				saved = over.savedServer
				all.Contexts[name] = savedServer{URL: saved.URL, Key: saved.Key, Tenant: saved.Tenant}
				return nil
			})
			left := over.end(cmd.Context(), nil)
			if err != nil {
				return errors.Join(err, left)
			}
			if left != nil {
				return fmt.Errorf("the sign-in is forgotten here, but: %w", left)
			}
			return output.Done(cmd, "signed out of "+saved.URL, map[string]any{"context": name, "url": saved.URL})
		},
	}
	cmd.Flags().StringVar(&name, "context", "", "name of the context ($SLIPWAY_CONTEXT)")
	return output.WithJSON(cmd)
}
