package web

import (
	"net/http"
	"sync"
)

// File is a text that browsers load.
type File struct {
	Body []byte
	// Type is the Content-Type.
	Type string
	// ContentPolicy is the Content-Security-Policy of a page, "" if the file is not a page.
	ContentPolicy string
}

// Serve serves a file, which read makes at the first request. A client that has the file already
// gets 304.
func Serve(read func() File) http.Handler {
	type tagged struct {
		File

		etag tag
	}
	once := sync.OnceValue(func() tagged {
		file := read()
		return tagged{file, newTag(file.Body, state{})}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := once()
		header := w.Header()
		header.Set("Content-Type", file.Type)
		if file.ContentPolicy != "" {
			header.Set("Content-Security-Policy", file.ContentPolicy)
		}
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set(headerCacheControl, "no-cache")
		header.Set("ETag", file.etag.String())
		if known, ok := parseTags(r.Header.Values("If-None-Match")); ok && known.weakly(file.etag) {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(file.Body) // a client that is gone needs no answer
	})
}
