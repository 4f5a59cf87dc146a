package vaulttest_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
)

// TestServerIsThere is also how the server is built: XIAOQU_TEST_VAULT=build.
func TestServerIsThere(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		s.Put(t, "xiaoqu/key", map[string]any{"open_key": "xqok-1"})
		got := s.Call(t, "GET", "secret/data/xiaoqu/key", nil)
		data, _ := got["data"].(map[string]any)
		if data["open_key"] != "xqok-1" {
			t.Errorf("got %v", got)
		}
	})
}
