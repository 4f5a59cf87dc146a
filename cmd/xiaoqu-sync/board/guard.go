package board

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// guard is what every request passes: time, headers, the host's name, and a
// net for panics.
func (b *board) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		defer b.caught(w)
		b.headers(w.Header())
		if !b.meant(r) {
			b.plain(w, http.StatusMisdirectedRequest, "this name is not ours: use 127.0.0.1 or localhost")
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (b *board) headers(h http.Header) {
	h.Set("Content-Security-Policy", b.page.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// meant tells whether a request to a loopback address was meant for it. A web
// page elsewhere can let its own name point to 127.0.0.1 and would then read
// ours through the visitor's browser; the header Host gives that away.
func (b *board) meant(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil || !local.IP.IsLoopback() {
		return true
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(b.opts.Hosts, func(name string) bool { return strings.EqualFold(host, name) })
}

func (b *board) caught(w http.ResponseWriter) {
	v := recover()
	if v == nil {
		return
	}
	b.opts.Logger.Error("panic while answering a request", zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
	b.plain(w, http.StatusInternalServerError, "internal error: see the log")
}
