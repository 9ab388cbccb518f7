package web

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// TestAttackALengthThatIsNotSent checks that the room for a text follows the bytes that arrive, and
// that a text of the stated length has no more room than it needs.
func TestAttackALengthThatIsNotSent(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, c := range map[string]struct {
		sent   int
		stated int64
		most   int // bytes of the text's room
	}{
		"nothing":               {0, 0, 1},
		"a small text":          {100, 100, 101},
		"a large text":          {20*mebibyte + 1, 20*mebibyte + 1, 20*mebibyte + 8<<10},
		"a text without length": {3 * mebibyte, -1, 3*mebibyte + 8<<10},
		"far less than stated":  {mebibyte, 24 * mebibyte, mebibyte + 8<<10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := bytes.Repeat([]byte("x"), c.sent)
			for how, from := range map[string]io.Reader{"at once": bytes.NewReader(sent), "by halves": iotest.HalfReader(bytes.NewReader(sent)), "with its end": iotest.DataErrReader(bytes.NewReader(sent))} {
				text, err := readText(from, c.stated)
				if err != nil || !bytes.Equal(text, sent) {
					t.Errorf("%s: got %d bytes, %v", how, len(text), err)
				}
				if cap(text) > c.most {
					t.Errorf("%s: the text has room for %d bytes, want at most %d", how, cap(text), c.most)
				}
			}
			if _, err := readText(io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(io.ErrUnexpectedEOF)), c.stated); err != io.ErrUnexpectedEOF {
				t.Errorf("got the error %v", err)
			}
		})
	}
}
