package standalone_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackTheFramingOfRequests sends requests that two servers may cut at different places.
// Each is refused, or is one request; the part that one of the two may take for a second
// request is never answered.
func TestAttackTheFramingOfRequests(t *testing.T) {
	t.Parallel()
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	defer stop()
	const second = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
	host := strings.TrimPrefix(credentials.BaseURL, "http://")
	if answers := exchange(t, host, second+second); len(answers) != 2 {
		t.Fatalf("two requests are answered %v", answers)
	}
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(second), second)
	for name, request := range map[string]string{
		"two lengths":                  "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: " + fmt.Sprint(len(second)) + "\r\n\r\n" + second,
		"two lengths in one line":      "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 0, " + fmt.Sprint(len(second)) + "\r\n\r\n" + second,
		"a length and chunks":          "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
		"two hosts":                    "GET /ok HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"no host":                      "GET /ok HTTP/1.1\r\n\r\n",
		"a space before the colon":     "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length : " + fmt.Sprint(len(second)) + "\r\n\r\n" + second,
		"a space before chunks' colon": "POST /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n" + chunked,
		"an unknown encoding":          "POST /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n" + chunked,
		"two encodings":                "POST /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked,
		"an encoding in a folded line": "POST /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + chunked,
		"a length with a sign":         "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n" + second,
	} {
		answers := exchange(t, host, request)
		if len(answers) != 1 {
			t.Errorf("%s: the answers are %v, want one", name, answers)
			continue
		}
		whole := answers[0] == http.StatusMethodNotAllowed && (name == "a length and chunks" || strings.HasPrefix(name, "an encoding in"))
		if !whole && answers[0] != http.StatusBadRequest && answers[0] != http.StatusNotImplemented {
			t.Errorf("%s: got %d", name, answers[0])
		}
	}
}

// TestAttackLargeHeaders sends headers that take much memory until they are complete.
func TestAttackLargeHeaders(t *testing.T) {
	t.Parallel()
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	defer stop()
	host := strings.TrimPrefix(credentials.BaseURL, "http://")
	for bytes, want := range map[int]int{32 << 10: http.StatusOK, 128 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		answers := exchange(t, host, "GET /ok HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", bytes)+"\r\n\r\n")
		if len(answers) != 1 || answers[0] != want {
			t.Errorf("%d bytes: got %v, want %d", bytes, answers, want)
		}
	}
}

// exchange sends text to a server, and returns the statuses of its answers until the server
// closes the connection. The server is told to do so after the last answer.
func exchange(t *testing.T, host, text string) (statuses []int) {
	t.Helper()
	connection, err := net.Dial("tcp", host)
	check.Must(t, err)
	defer connection.Close()
	check.Must(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(connection, text)
	check.Must(t, err)
	check.Must(t, connection.(*net.TCPConn).CloseWrite())
	for reader := bufio.NewReader(connection); ; {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}
