package standalone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// certify writes a certificate for 127.0.0.1 with a serial number, and returns it. The files
// get the given modification time, because file systems may not distinguish two writes in quick
// succession.
func certify(t *testing.T, files standalone.TLS, serial int64, changed time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check.Must(t, err)
	for name, block := range map[string]*pem.Block{
		files.CertFile: {Type: "CERTIFICATE", Bytes: der}, files.KeyFile: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		check.Must(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
		check.Must(t, os.Chtimes(name, changed, changed))
	}
	certificate, err := x509.ParseCertificate(der)
	check.Must(t, err)
	return certificate
}

// secureClient trusts one certificate, and opens a connection for each request.
func secureClient(trusted *x509.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
}

// TestTheServerSpeaksTLS uses the certificate of its files, and a new certificate when the
// files change. It logs once that it cannot use changed files.
func TestTheServerSpeaksTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := standalone.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	first := certify(t, files, 1, time.Now().Add(-time.Hour))
	logged := &check.Log{}
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(logged, nil)), TLS: files})
	defer stop()
	if !strings.HasPrefix(credentials.BaseURL, "https://127.0.0.1:") {
		t.Fatalf("the server says that it is at %s", credentials.BaseURL)
	}
	wantServed := func(client *http.Client, serial int64) {
		t.Helper()
		answer, err := client.Get(credentials.BaseURL + "/ok")
		check.Must(t, err)
		defer answer.Body.Close()
		if got := answer.TLS.PeerCertificates[0].SerialNumber.Int64(); answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 || got != serial {
			t.Errorf("got %s over %s with the certificate %d, want %d", answer.Status, answer.Proto, got, serial)
		}
	}
	wantServed(secureClient(first), 1)
	check.Must(t, os.WriteFile(files.KeyFile, []byte("half of a renewal"), 0o600))
	wantServed(secureClient(first), 1)
	wantServed(secureClient(first), 1)
	const warning = "the changed certificate cannot be used"
	if got := strings.Count(logged.String(), warning); got != 1 {
		t.Errorf("the log has %q %d times:\n%s", warning, got, logged)
	}
	wantServed(secureClient(certify(t, files, 2, time.Now().Add(time.Hour))), 2)
}

// TestAttackSecureConnectionsForNothing has strangers who complete the handshake and send no
// request: the connection of a client with a key stays.
func TestAttackSecureConnectionsForNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := standalone.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	roots := x509.NewCertPool()
	roots.AddCert(certify(t, files, 1, time.Now()))
	const anonymous = 4
	credentials, stop := serveWith(t, standalone.Config{
		Data: t.TempDir(), Log: slog.New(slog.DiscardHandler), TLS: files, Connections: inbound.Limits{Anonymous: anonymous, Known: 4},
	})
	defer stop()
	config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	known := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	reusesConnection(t, known, credentials)
	for range 3 * anonymous {
		connection, err := tls.Dial("tcp", strings.TrimPrefix(credentials.BaseURL, "https://"), config)
		check.Must(t, err)
		defer connection.Close()
	}
	if !reusesConnection(t, known, credentials) {
		t.Error("strangers took the place of a client with a key")
	}
}

// reusesConnection sends a request with the workspace's key, and reports whether the request
// used an open connection.
func reusesConnection(t *testing.T, client *http.Client, credentials standalone.Credentials) (reused bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, credentials.BaseURL+"/v2/deployments", nil)
	check.Must(t, err)
	request.Header.Set("X-Api-Key", credentials.APIKey)
	request.Header.Set("X-Tenant-Id", credentials.TenantID)
	answer, err := client.Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("got %s", answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	check.Must(t, err)
	return reused
}

// TestTLSThatCannotWork gives the server a certificate in ways that it refuses to start with.
func TestTLSThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]standalone.TLS{
		"a certificate without a key": {CertFile: "cert.pem"},
		"a key without a certificate": {KeyFile: "key.pem"},
		"files that are not there":    {CertFile: "cert.pem", KeyFile: "key.pem"},
		"files and ACME":              {CertFile: "cert.pem", KeyFile: "key.pem", ACMEHosts: []string{"agents.example.com"}},
	} {
		_, err := standalone.Open(standalone.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Log: slog.New(slog.DiscardHandler), TLS: config})
		if !errors.Is(err, standalone.ErrTLS) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
