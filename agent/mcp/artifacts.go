package mcp

import (
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// tokenForm is what a link's token may be; anything else is not looked for.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{20,128}$`)

// Artifacts serves one document for each address /artifacts/{token}: for reading
// only, never kept by anybody on the way, never run by a browser. What is unknown and
// what has expired look the same.
func (d *Door) Artifacts() http.Handler { return Artifacts(d.options.Documents, d.options.Logger) }

// Artifacts is [Door.Artifacts] without a door: documents are linked to by other
// doors too.
func Artifacts(documents Documents, log *zap.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only to be read", http.StatusMethodNotAllowed)
			return
		}
		serveDocument(w, r, documents, log, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	})
}

func serveDocument(w http.ResponseWriter, r *http.Request, documents Documents, log *zap.Logger, token string) {
	if documents == nil || !tokenForm.MatchString(token) {
		http.Error(w, "there is no such document", http.StatusNotFound)
		return
	}
	doc, link, err := documents.Document(r.Context(), token)
	if err != nil {
		log.Warn("a document cannot be read now", zap.Error(err))
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	if doc == nil || link == nil {
		http.Error(w, "there is no such document", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", doc.Type+"; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": doc.Name}))
	h.Set("Content-Length", strconv.Itoa(len(doc.Body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(doc.Body) // who has gone needs no document
	}
}
