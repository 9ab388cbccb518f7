package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// client returns a client that goes through the proxy with the pass.
func (p *Pass) client(t *testing.T) *http.Client {
	t.Helper()
	proxy, err := url.Parse(p.URL())
	check.Must(t, err)
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
}

func openProxy(t *testing.T, networks Networks) *Proxy {
	t.Helper()
	proxy, err := OpenProxy(networks)
	check.Must(t, err)
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy
}

func ask(t *testing.T, client *http.Client, at string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	check.Must(t, err)
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

var loopback = Networks{netip.MustParsePrefix("127.0.0.0/8")}

// TestAttackProxyReachesNoPrivateAddress asks for a server of this machine under all its
// names, in plain HTTP and by CONNECT, and through a redirect of a permitted server.
func TestAttackProxyReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer inner.Close()
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	check.Must(t, err)
	proxy := openProxy(t, nil)
	pass := proxy.NewPass()
	defer pass.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]"} {
		if status, _, err := ask(t, pass.client(t), "http://"+host+":"+port+"/"); err != nil || status == http.StatusOK {
			t.Errorf("%s: %d, %v", host, status, err)
		}
		if _, _, err := ask(t, pass.client(t), "https://"+host+":"+port+"/"); err == nil {
			t.Errorf("CONNECT %s was answered", host)
		}
		if err := connect(t, pass, host, port); err == nil {
			t.Errorf("Connect joined %s", host)
		}
	}
	if pass.Refused() == "" {
		t.Error("no refusal was noted")
	}
	outer := httptest.NewServer(http.RedirectHandler("http://[::1]:"+port+"/", http.StatusFound))
	defer outer.Close()
	some := openProxy(t, loopback).NewPass()
	defer some.Close()
	if status, _, err := ask(t, some.client(t), outer.URL); err != nil || status != http.StatusForbidden {
		t.Errorf("the redirect was answered with %d, %v", status, err)
	}
}

// connect calls Connect as a program that was started with the pass would.
func connect(t *testing.T, pass *Pass, host, port string) error {
	t.Helper()
	proxy, err := url.Parse(pass.URL())
	check.Must(t, err)
	conn, err := through(t.Context(), proxy, net.JoinHostPort(strings.Trim(host, "[]"), port), http.Header{headerDirect: {"true"}})
	if err == nil {
		conn.Close()
	}
	return err
}

// TestAttackProxyServesHoldersOfAPassOnly has other programs of the machine that ask the
// proxy.
func TestAttackProxyServesHoldersOfAPassOnly(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the credentials were handed on")
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	proxy := openProxy(t, loopback)
	pass, ended := proxy.NewPass(), proxy.NewPass()
	defer pass.Close()
	ended.Close()
	none := &Pass{proxy: proxy}
	wrong := &Pass{proxy: proxy, id: pass.id, secret: "guess"}
	for name, stranger := range map[string]*Pass{"none": none, "a wrong secret": wrong, "one that has ended": ended} {
		if status, _, err := ask(t, stranger.client(t), server.URL); err != nil || status != http.StatusProxyAuthRequired {
			t.Errorf("%s: %d, %v", name, status, err)
		}
		if err := connect(t, stranger, "127.0.0.1", "1"); err == nil || errors.Is(err, ErrAddress) {
			t.Errorf("%s: CONNECT: %v", name, err)
		}
	}
	if status, body, err := ask(t, pass.client(t), server.URL); err != nil || status != http.StatusOK || body != "hello" {
		t.Errorf("with a pass: %d %q %v", status, body, err)
	}
}

// TestAttackProxyHoldsNoConnection has programs without a pass that keep their connections:
// after a refusal, with a body that never arrives, and more connections than the proxy has
// places for.
func TestAttackProxyHoldsNoConnection(t *testing.T) {
	t.Parallel()
	proxy := openProxy(t, nil)
	at := proxy.listener.Addr().String()
	for _, request := range []string{
		"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", at)
		check.Must(t, err)
		defer conn.Close()
		check.Must(t, errors.Join(conn.SetDeadline(time.Now().Add(5*time.Second)), writeAll(conn, request)))
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 407 ") {
			t.Errorf("%q: the proxy answers %q and does not end the connection: %v", request, answer, err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "there") }))
	defer server.Close()
	allowed := openProxy(t, loopback)
	var first net.Conn
	for range mostConnections {
		conn, err := net.Dial("tcp", allowed.listener.Addr().String())
		check.Must(t, err)
		defer conn.Close()
		if first == nil {
			first = conn
		}
	}
	check.Must(t, first.SetReadDeadline(time.Now().Add(dialTimeout/2)))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of %d connections without a pass stays: %v", mostConnections, err)
	}
	pass := allowed.NewPass()
	defer pass.Close()
	if status, body, err := ask(t, pass.client(t), server.URL); err != nil || status != http.StatusOK || body != "there" {
		t.Errorf("beside idle connections, the holder of a pass gets %d %q, %v", status, body, err)
	}
}

func writeAll(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// TestConnectJoinsBothDirections checks that the end of each direction is passed on.
func TestConnectJoinsBothDirections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("you said "), said...))
	}()
	pass := openProxy(t, loopback).NewPass()
	defer pass.Close()
	t.Setenv(ProxyVariable, pass.URL())
	host, port, err := net.SplitHostPort(listener.Addr().String())
	check.Must(t, err)
	var out bytes.Buffer
	if err := Connect(context.Background(), host, port, strings.NewReader("hello"), &out); err != nil || out.String() != "you said hello" {
		t.Errorf("got %q, %v", &out, err)
	}
}

// TestNetworksAreReadAsTheyAreWritten reads valid and invalid settings.
func TestNetworksAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"false", "true", "10.1.0.0/16", "10.1.0.0/16,192.168.7.3/32,fd00::/8"} {
		networks, err := ParseNetworks(setting)
		if err != nil || networks.String() != setting {
			t.Errorf("%s: got %s, %v", setting, networks, err)
		}
	}
	for _, setting := range []string{"yes", "10.0.0.0/33", "10.0.0.1,", "git.internal"} {
		if networks, err := ParseNetworks(setting); err == nil {
			t.Errorf("%s: got %s", setting, networks)
		}
	}
	some, err := ParseNetworks("10.1.0.0/16, 192.168.7.3")
	check.Must(t, err)
	for addr, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "192.168.7.3": true, "192.168.7.4": false, "8.8.8.8": true, "169.254.169.254": false} {
		if got := some.permit(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %v", addr, got)
		}
	}
}

// TestAttackHostsOfOtherPrograms checks hosts by name, because no dialer of this server makes
// the connection.
func TestAttackHostsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "localhost:5000", "10.0.0.1:5000", "[::1]:5000", "169.254.169.254", "127.1", "2130706433", "0x7f000001", "localhost.:80"} {
		if err := Networks(nil).CheckHost(t.Context(), host); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: got %v", host, err)
		}
	}
	for _, host := range []string{"8.8.8.8:443", "nowhere.invalid"} {
		if err := Networks(nil).CheckHost(t.Context(), host); err != nil {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if err := loopback.CheckHost(t.Context(), "127.0.0.1:5000"); err != nil {
		t.Errorf("a network that is permitted: got %v", err)
	}
}
