package standalone

import (
	"net/url"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

func TestTheHostOfImages(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:8080": "127.0.0.1:8080", "http://[::1]:8080": "[::1]:8080", "https://slipway.example.com/prefix": "slipway.example.com",
		"http://localhost": "localhost", "http://slipway": "slipway:80", "https://slipway": "slipway:443", "http://slipway:8080": "slipway:8080",
	} {
		parsed, err := url.Parse(address)
		check.Must(t, err)
		if got := imageHost(parsed); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
