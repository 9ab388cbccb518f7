package client

import (
	"fmt"
	"net/url"
	"strings"
)

// CheckURL returns an error unless the address, which a flag or a variable has, can be that of a
// server.
func CheckURL(name, address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("%s must be the http or https address of a server, not %q", name, address)
	}
	return nil
}

// CheckBaseURL returns an error unless the value of the flag --base-url is empty or can be the
// address of a whole server.
func CheckBaseURL(address string) error {
	if address == "" {
		return nil
	}
	if err := CheckURL("--base-url", address); err != nil {
		return err
	}
	parsed, _ := url.Parse(address) // CheckURL has parsed it
	if strings.Trim(parsed.Path, "/") != "" {
		return fmt.Errorf("--base-url must have no path, not %q: the console and the registry of images are at the root of an address", parsed.Path)
	}
	return nil
}
