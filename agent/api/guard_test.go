package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// A database that was not migrated gets no better by waiting, and the operator is told.
func TestATokenThatCannotBeCheckedSaysWhy(t *testing.T) {
	w := setUp(t)
	empty, err := store.Open(t.Context(), store.Options{URL: localpg.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(empty.Close)
	core, log := observer.New(zap.DebugLevel)
	server := httptest.NewServer(api.New(api.Options{Service: w.service, Tokens: empty, Logger: zap.New(core)}).Handler())
	t.Cleanup(server.Close)
	w.url = server.URL
	r := w.call(t, "GET", "/api/v1/capabilities", "xqa_canary", "").sound(t)
	if r.status != http.StatusUnprocessableEntity || r.Error.Code != "schema_mismatch" || *r.Error.Retryable {
		t.Errorf("%d %s", r.status, r.text)
	}
	if log.Len() != 1 || strings.Contains(log.All()[0].Message, "canary") {
		t.Errorf("%v", log.All())
	}
	empty.Close()
	if r := w.call(t, "GET", "/api/v1/capabilities", "xqa_canary", "").sound(t); r.status != http.StatusServiceUnavailable || !*r.Error.Retryable {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// The scheme's name has no case (RFC 9110 §11.1).
func TestTheSchemeOfATokenHasNoCase(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "read")
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		if r := w.call(t, "GET", "/api/v1/capabilities", token, "", "Authorization", scheme+" "+token).sound(t); r.status != 200 {
			t.Errorf("%s: %d", scheme, r.status)
		}
	}
}
