package standalone

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// TLS says how the server proves its name to clients. The zero value serves HTTP without TLS.
type TLS struct {
	// CertFile and KeyFile hold a certificate chain and its key in PEM. They are read again when
	// they change, so that a renewed certificate needs no restart.
	CertFile, KeyFile string
	// ACMEHosts are the names for which the server gets certificates from an ACME authority
	// (RFC 8555). The authority connects to port 443 of each name (TLS-ALPN-01).
	ACMEHosts []string
	// ACMEDirectory is the URL of the authority's directory; "" stands for Let's Encrypt.
	// ACMEEmail is the address to which the authority may write; "" gives no address.
	ACMEDirectory, ACMEEmail string
}

// ErrTLS says that the TLS settings cannot work.
var ErrTLS = errors.New("TLS")

// on reports whether the server uses TLS.
func (t TLS) on() bool { return t.CertFile != "" || t.KeyFile != "" || len(t.ACMEHosts) > 0 }

// open returns the configuration of the listener, nil without TLS. The certificates and keys
// from ACME are stored in the directory kept.
func (t TLS) open(kept string, log *slog.Logger) (*tls.Config, error) {
	switch {
	case !t.on():
		return nil, nil
	case len(t.ACMEHosts) > 0 && (t.CertFile != "" || t.KeyFile != ""):
		return nil, fmt.Errorf("%w: certificates come from files or from ACME, not from both", ErrTLS)
	case len(t.ACMEHosts) > 0:
		manager := &autocert.Manager{
			Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(t.ACMEHosts...), Cache: autocert.DirCache(kept),
			Email: t.ACMEEmail, Client: &acme.Client{DirectoryURL: t.ACMEDirectory},
		}
		config := manager.TLSConfig()
		config.MinVersion = tls.VersionTLS12
		return config, nil
	case t.CertFile == "" || t.KeyFile == "":
		return nil, fmt.Errorf("%w: a certificate needs both its file and the file of its key", ErrTLS)
	}
	files := &certificateFiles{cert: t.CertFile, key: t.KeyFile, log: log}
	if _, err := files.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}, nil
}

// URL is the address that clients use for a server with this listening address: the name that
// ACME certifies, otherwise the address itself. If the server listens on all interfaces, it is
// the loopback interface.
func (t TLS) URL(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	switch {
	case len(t.ACMEHosts) > 0 && ok && tcp.Port != 443:
		return "https://" + net.JoinHostPort(t.ACMEHosts[0], strconv.Itoa(tcp.Port))
	case len(t.ACMEHosts) > 0:
		return "https://" + t.ACMEHosts[0]
	case ok && tcp.IP.IsUnspecified():
		address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	if t.on() {
		return "https://" + address.String()
	}
	return "http://" + address.String()
}

// serve serves a listener, with TLS if the server is configured for it.
func serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig == nil {
		return server.Serve(listener)
	}
	return server.ServeTLS(listener, "", "")
}

// certificateFiles is a certificate in files.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	// read holds the modification times of the files that the current certificate was read
	// from.
	read [2]time.Time
	// trouble is why the files cannot be read, as it was last logged.
	trouble string
}

// get returns the certificate. If the files cannot be read, for example because only one of
// them is new, the current certificate stays in use.
func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := changedAt(c.cert, c.key)
	if err == nil && (c.current == nil || changed != c.read) {
		var certificate tls.Certificate
		if certificate, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.current, c.read = &certificate, changed
		}
	}
	if c.current == nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	c.tell(err)
	return c.current, nil
}

// tell logs a trouble with the files once: the certificate that stays in use will expire.
func (c *certificateFiles) tell(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != c.trouble {
		c.log.Warn("the changed certificate cannot be used, and the former one stays in use",
			"expires", c.current.Leaf.NotAfter, "error", err)
	}
	c.trouble = trouble
}

func changedAt(files ...string) (at [2]time.Time, err error) {
	for i, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}
