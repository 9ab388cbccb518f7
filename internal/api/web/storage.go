package web

import (
	"context"
	"io"
	"net/http"
)

// Storage says whether there is room for more data.
type Storage interface {
	// Room returns a fault when the storage accepts no new data.
	Room() error
	// Reserve returns a fault when even work under way may store no more.
	Reserve() error
}

// UnderWay says that a request belongs to work that has begun, such as a run. There is a reserve
// for that work.
func UnderWay(ctx context.Context) { exchangeOf(ctx).underWay = true }

// Storing is the middleware before handlers that add data. A body that is arriving when the
// room ends is accepted while the reserve lasts.
func (m *Mux) Storing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.Storage == nil {
			next.ServeHTTP(w, r)
			return
		}
		check := m.Storage.Room
		if exchangeOf(r.Context()).underWay {
			check = m.Storage.Reserve
		}
		if err := check(); err != nil {
			m.Error(w, r, err)
			return
		}
		if r.Body != nil {
			r.Body = &storedBody{r.Body, m.Storage}
		}
		next.ServeHTTP(w, r)
	})
}

// storedBody is a body that is read as long as there is room for it.
type storedBody struct {
	io.ReadCloser
	storage Storage
}

func (b *storedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if full := b.storage.Reserve(); full != nil {
		return n, full
	}
	return n, err
}
