package framework_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// TestEncryption reads the key where the platform asks the repository's own encryption.
func TestEncryption(t *testing.T) {
	t.Parallel()
	python := `{"dependencies": ["."], "graphs": {"a": "./a.py:a"}, "encryption": %}`
	files := func(text, value string) map[string]string {
		return map[string]string{"framework.json": strings.Replace(text, "%", value, 1), "requirements.txt": "", "package.json": "{}", "a.py": "", "own.py": ""}
	}
	for value, want := range map[string]string{`{"path": "./own.py:e"}`: "./own.py:e", `null`: "", `{}`: ""} {
		config, err := framework.Read(tree(t, files(python, value)), "", framework.OfferEncryption)
		if err != nil || config.Encryption != want {
			t.Errorf("%s: got %q, %v", value, config.Encryption, err)
		}
	}
	for _, c := range []struct {
		text, value, words string
		offers             []framework.Offer
	}{
		{python, `{"path": "./own.py:e"}`, "- encryption: the platform encrypts nothing with a key, and with code of the repository only on one machine", nil},
		{python, `{"path": "./own.py"}`, "- encryption.path: must be", []framework.Offer{framework.OfferEncryption}},
		{python, `{"path": "./own.py:e", "key": "k"}`, "- encryption.key: is not a key of encryption", []framework.Offer{framework.OfferEncryption}},
		{python, `"./own.py:e"`, "- encryption: must be an object", []framework.Offer{framework.OfferEncryption}},
		{`{"graphs": {"a": "./a.ts:a"}, "encryption": %}`, `{"path": "./own.ts:e"}`, "- encryption: is only for graphs that the python runtime hosts", []framework.Offer{framework.OfferEncryption}},
		{`{"graphs": {"a": "a"}, "start": ["./agent"], "encryption": %}`, `{"path": "./own.py:e"}`, "- encryption: is only for graphs that the python runtime hosts", []framework.Offer{framework.OfferEncryption}},
	} {
		if _, err := framework.Read(tree(t, files(c.text, c.value)), "", c.offers...); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s %s: got %v, want %q", c.text, c.value, err, c.words)
		}
	}
}
