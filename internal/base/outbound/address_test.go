package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAttackPrivateAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.32.0.1": true, "100.63.255.255": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.8.8.8": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "0.0.0.0": false, "0.1.2.3": false, "192.0.0.192": false,
		"198.18.0.1": false, "203.0.113.9": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:100.64.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
		"2001:0:7f00:1::": false, "2001:db8::1": false, "fec0::1": false, "::ffff:0:127.0.0.1": false, "64:ff9b:1::7f00:1": false, "100::1": false, "5f00::1": false, "3fff::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestAttackURLs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct{ closed, open bool }{
		"https://provider.test/token?a=b":                    {true, true},
		"https://8.8.8.8/":                                   {true, true},
		"https://10.0.0.1/":                                  {false, true},
		"https://[fd00::1]/":                                 {false, true},
		"https://169.254.169.254/latest":                     {false, true},
		"https://localhost/":                                 {false, true},
		"https://127.0.0.1:8443/":                            {false, true},
		"http://127.0.0.1:80/":                               {false, true},
		"http://[::1]:80/":                                   {false, true},
		"http://localhost:80/":                               {false, true},
		"http://provider.test/":                              {false, false},
		"http://10.0.0.1/":                                   {false, false},
		"http://localhost.provider.test/":                    {false, false},
		"http://127.0.0.1.nip.test/":                         {false, false},
		"ftp://provider.test/":                               {false, false},
		"https://":                                           {false, false},
		"https://:443/":                                      {false, false},
		"https:/provider.test":                               {false, false},
		"//provider.test":                                    {false, false},
		"https://u:p@provider.test/":                         {false, false},
		"https://provider.test/#f":                           {false, false},
		"https://provider.test/\x7f":                         {false, false},
		"https://provider.test/" + strings.Repeat("x", 2048): {false, false},
	} {
		for private, good := range map[string]bool{"false": want.closed, "true": want.open} {
			networks, err := ParseNetworks(private)
			check.Must(t, err)
			if err := CheckURL("url", raw, networks); (err == nil) != good || err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("%.80q, private addresses %s: got %v", raw, private, err)
			}
		}
	}
}

// TestAttackNamesThatResolveToPrivateAddresses has names whose text passes every check. Their
// address is checked when they are dialed.
func TestAttackNamesThatResolveToPrivateAddresses(t *testing.T) {
	t.Parallel()
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0x7f.1"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+port, nil)
		check.Must(t, err)
		if answer, err := NewClient(Limits{Timeout: time.Second}).Do(request); err == nil {
			answer.Body.Close()
			t.Errorf("%s was called", host)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+port, nil)
	check.Must(t, err)
	if _, err := NewClient(Limits{Timeout: time.Second}).Do(request); !errors.Is(err, ErrAddress) {
		t.Errorf("got %v", err)
	}
	if called {
		t.Error("the server was reached")
	}
	answer, err := NewClient(Limits{Private: Everywhere, Timeout: time.Second}).Do(request)
	if err != nil || !called {
		t.Fatalf("the setting does not allow it: %v", err)
	}
	answer.Body.Close()
}

// TestAttackAnAnswerWithoutEnd: the answer is too large, redirects, or never comes.
func TestAttackAnAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 11)) })
	mux.Handle("/elsewhere", http.RedirectHandler("/large", http.StatusFound))
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { <-hang })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(hang)
	client := NewClient(Limits{Private: Everywhere, Timeout: 200 * time.Millisecond, MaxAnswer: 10})
	get := func(path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		check.Must(t, err)
		return client.Do(request)
	}
	large, err := get("/large")
	check.Must(t, err)
	if _, err := io.ReadAll(large.Body); !errors.Is(err, ErrTooLarge) {
		t.Errorf("11 bytes of 10: got %v", err)
	}
	if err := large.Body.Close(); err != nil {
		t.Error(err)
	}
	elsewhere, err := get("/elsewhere")
	if err != nil || elsewhere.StatusCode != http.StatusFound {
		t.Fatalf("a redirect was followed: %v, %v", elsewhere, err)
	}
	if err := elsewhere.Body.Close(); err != nil {
		t.Error(err)
	}
	if slow, err := get("/slow"); err == nil {
		t.Errorf("an answer that does not come: got %s", slow.Status)
	}
}

// TestAttackElsewhereIsNotTheMachine: whatever networks a setting names, Elsewhere leaves none
// of the machine's own addresses, and takes no other address away.
func TestAttackElsewhereIsNotTheMachine(t *testing.T) {
	t.Parallel()
	own := []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "169.254.169.254", "169.254.100.1", "169.254.170.2", "::1", "::", "fe80::1", "fd00:ec2::254", "fd00:ec2::23",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254",
	}
	for setting, others := range map[string][]string{
		"true":                   {"10.1.2.3", "172.16.0.1", "192.168.7.3", "100.64.0.1", "fd12::1", "fd00:ec1::1", "fd00:ec3::1"},
		"0.0.0.0/0,::/0":         {"10.1.2.3", "126.255.255.255", "128.0.0.1", "fd12::1"},
		"127.0.0.0/8,10.0.0.0/8": {"10.255.255.255"},
		"169.254.169.254,::1":    nil,
		"fd00::/8":               {"fd12::1", "fdff::1"},
	} {
		networks, err := ParseNetworks(setting)
		check.Must(t, err)
		networks = networks.Elsewhere()
		for _, text := range own {
			if networks.permit(netip.MustParseAddr(text)) {
				t.Errorf("%s permits %s", setting, text)
			}
		}
		for _, text := range others {
			if !networks.permit(netip.MustParseAddr(text)) {
				t.Errorf("%s does not permit %s", setting, text)
			}
		}
	}
}

// TestAttackWithoutLoopback: no address that reaches the machine's own programs is left.
func TestAttackWithoutLoopback(t *testing.T) {
	t.Parallel()
	networks := Everywhere.WithoutLoopback()
	for text, want := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "::": false, "::1": false, "::ffff:0.0.0.0": false,
		"10.0.0.1": true, "192.168.7.3": true, "fd12::1": true,
	} {
		if got := networks.permit(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is permitted: %v", text, got)
		}
	}
}
