package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/cli/browser"
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/api/signin"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const openLong = `Open the console of the server in a browser, and sign in there. The server makes a code that works
once, within a minute. The browser exchanges the code for a session that may do what the API key may
do, and that ends with the key. The API key itself stays on this machine. After slipway login the
address leads to the issuer instead. If this machine has no browser, open the printed address on
another machine.`

func newOpen() *cobra.Command {
	var where Where
	var noBrowser, asJSON bool
	command := &cobra.Command{Use: "open", Short: "Open the console in a browser and sign in", Long: openLong}
	cmd := where.asks(command, cobra.NoArgs, func(cmd *cobra.Command, server *api, _ []string) (err error) {
		var console consoleAddress
		if where.User != "" {
			console.URL = server.Address(signin.BrowserPath + "?" + url.Values{"workspace": {where.server.Tenant}}.Encode())
		} else if console, err = newConsoleAddress(cmd.Context(), server.Client); err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(console)
		}
		fmt.Fprintln(cmd.OutOrStdout(), console.URL)
		if noBrowser || !output.IsTerminal(cmd.OutOrStdout()) {
			return nil
		}
		if err := openBrowser(console.URL); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "no browser could be started here; open the address above within a minute")
		}
		return nil
	})
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document, and open no browser")
	return cmd
}

// consoleAddress is an address of the console that signs a browser in.
type consoleAddress struct {
	URL string `json:"url"`
}

// newConsoleAddress makes an address with a code that is good once, for a minute.
func newConsoleAddress(ctx context.Context, to *client.Client) (console consoleAddress, err error) {
	err = to.Call(ctx, http.MethodPost, "/console/codes", nil, &console)
	return console, err
}

// openBrowser opens an address in a browser, which may print nothing here.
func openBrowser(address string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return browser.OpenURL(address)
}
