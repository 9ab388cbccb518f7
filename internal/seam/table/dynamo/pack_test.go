package dynamo_test

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

// storedBody returns the attribute in which a body is stored, and the attribute's value.
func storedBody(t *testing.T, body []byte) (name string, value []byte) {
	t.Helper()
	w := newWire(t, done)
	check.Must(t, w.open().Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a"), Body: body}}))
	writes, _ := w.sent()[0].decode(t)["TransactItems"].([]any)
	put, _ := writes[0].(map[string]any)["Put"].(map[string]any)
	stored, _ := put["Item"].(map[string]any)
	for _, name := range []string{"body", "packed"} {
		if of, ok := stored[name].(map[string]any); ok {
			value, err := base64.StdEncoding.DecodeString(of["B"].(string))
			check.Must(t, err)
			return name, value
		}
	}
	return "", nil
}

// readBody returns what Get reads of an item whose body is stored in an attribute.
func readBody(t *testing.T, name string, value []byte) ([]byte, error) {
	t.Helper()
	attribute := fmt.Sprintf(`%q:{"B":%q}`, name, base64.StdEncoding.EncodeToString(value))
	w := newWire(t, reply(http.StatusOK, `{"Item":`+item(key("p", "a"), nil, attribute)+`}`))
	found, err := w.open().Get(t.Context(), key("p", "a"))
	if err != nil {
		return nil, err
	}
	return found.Body, nil
}

func TestBodiesArePacked(t *testing.T) {
	t.Parallel()
	random := make([]byte, 1000)
	_, _ = rand.Read(random)
	for name, c := range map[string]struct {
		body   []byte
		packed bool
	}{
		"a batch of events":  {[]byte(strings.Repeat(`{"p":1,"e":"messages","d":[{"content":"x"}]}`, 6)), true},
		"the largest":        {make([]byte, dynamo.InlineBody), true},
		"a short one":        {[]byte(`{"input":{"messages":[]}}`), false},
		"one without a form": {random, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attribute, value := storedBody(t, c.body)
			if want := map[bool]string{true: "packed", false: "body"}[c.packed]; attribute != want {
				t.Fatalf("got the attribute %q, want %q", attribute, want)
			}
			if c.packed && len(value) > len(c.body)/2 {
				t.Errorf("%d bytes are stored as %d", len(c.body), len(value))
			}
			got, err := readBody(t, attribute, value)
			if err != nil || !bytes.Equal(got, c.body) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestADamagedBodyIsAnError checks it for a text that was cut off, for one that is not packed, and
// for one that would fill the memory.
func TestADamagedBodyIsAnError(t *testing.T) {
	t.Parallel()
	_, whole := storedBody(t, bytes.Repeat([]byte("xyz"), 100))
	for name, value := range map[string][]byte{"cut off": whole[:len(whole)-3], "not packed": []byte("xyz"), "too long": deflated(t, 1<<20)} {
		if body, err := readBody(t, "packed", value); err == nil {
			t.Errorf("%s: got %d bytes, want an error", name, len(body))
		}
	}
}

// deflated compresses as many zeros.
func deflated(t *testing.T, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(make([]byte, size))
	}
	if err == nil {
		err = w.Close()
	}
	check.Must(t, err)
	return out.Bytes()
}
