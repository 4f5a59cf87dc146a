package sync_test

import (
	"fmt"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestNumbersAndTextComeThroughExactly(t *testing.T) {
	w := newWorld(t)
	for i, fields := range []string{
		`{"n":1234567890123456789,"neg":-9223372036854775808,"twenty":12345678901234567890}`,
		`{"f":0.1,"trailing":1.10,"dec":12345678901234567890.123}`,
		`{"emoji":"👩‍👩‍👧‍👦🇨🇳","rare":"𠮷㐂","escaped":"\\u0000 stays","quote":"\"\\/"}`,
		`{"nested":{"deep":[{"数":[1,2.50,{"x":null}]}]},"flags":[true,false,null]}`,
	} {
		w.xiaoqu.Put("contracts", fmt.Sprint(1852000000000000001+i), fields)
	}
	w.mustRun(t, "contracts")
	w.equal(t, "contracts")
}

func TestEveryReadingOfTheContractIsCopedWith(t *testing.T) {
	v := func(f func(*remotetest.Variants)) func(*remotetest.Variants) { return f }
	variants := map[string]func(*remotetest.Variants){
		"list called items":            v(func(v *remotetest.Variants) { v.ListName = "items" }),
		"list called as resource":      v(func(v *remotetest.Variants) { v.ListName = "{resource}" }),
		"request id in data":           v(func(v *remotetest.Variants) { v.RequestID = remotetest.RequestIDData }),
		"request id in _meta":          v(func(v *remotetest.Variants) { v.RequestID = remotetest.RequestIDMeta }),
		"request id in a header":       v(func(v *remotetest.Variants) { v.RequestID = remotetest.RequestIDHeader }),
		"no request id":                v(func(v *remotetest.Variants) { v.RequestID = remotetest.RequestIDAbsent }),
		"CRLF":                         v(func(v *remotetest.Variants) { v.SSE.CRLF = true }),
		"BOM":                          v(func(v *remotetest.Variants) { v.SSE.BOM = true }),
		"no space after data:":         v(func(v *remotetest.Variants) { v.SSE.NoSpace = true }),
		"no event name":                v(func(v *remotetest.Variants) { v.SSE.NoEventName = true }),
		"no final blank line":          v(func(v *remotetest.Variants) { v.SSE.NoFinalBlank = true }),
		"event ids and retry":          v(func(v *remotetest.Variants) { v.SSE.IDs = true }),
		"keep-alive comments":          v(func(v *remotetest.Variants) { v.SSE.KeepAlive = true }),
		"several data lines":           v(func(v *remotetest.Variants) { v.SSE.SeveralDataLines = true }),
		"a notification first":         v(func(v *remotetest.Variants) { v.SSE.NotificationFirst = true }),
		"a server request first":       v(func(v *remotetest.Variants) { v.SSE.RequestFirst = true }),
		"JSON answers":                 v(func(v *remotetest.Variants) { v.JSONAnswer = true }),
		"v1 envelope":                  v(func(v *remotetest.Variants) { v.V1Always = true }),
		"absent nulls":                 v(func(v *remotetest.Variants) { v.AbsentNulls = true }),
		"notice in the envelope":       v(func(v *remotetest.Variants) { v.NoticeInEnvelope = true }),
		"content repeats the JSON":     v(func(v *remotetest.Variants) { v.ContentJSON = true }),
		"full pass without tombstones": v(func(v *remotetest.Variants) { v.OmitTombstones = true }),
		"deleted_at empty":             v(func(v *remotetest.Variants) { v.LiveDeletedAt = remotetest.DeletedAtEmpty }),
		"deleted_at absent":            v(func(v *remotetest.Variants) { v.LiveDeletedAt = remotetest.DeletedAtAbsent }),
		"string ids":                   v(func(v *remotetest.Variants) { v.StringIDs = true }),
		"string versions":              v(func(v *remotetest.Variants) { v.StringVersions = true }),
		"bare tombstones":              v(func(v *remotetest.Variants) { v.BareTombstones = true }),
		"times with a space":           v(func(v *remotetest.Variants) { v.TimeLayout = "2006-01-02 15:04:05" }),
		"empty tools/list":             v(func(v *remotetest.Variants) { v.EmptyLists = 2 }),
		"empty tools/list body":        v(func(v *remotetest.Variants) { v.EmptyLists, v.EmptyListBody = 1, true }),
		"paged tools/list":             v(func(v *remotetest.Variants) { v.ToolsPerPage = 1 }),
	}
	for name, change := range variants {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *remotetest.Options) { change(&o.Variants) })
			w.xiaoqu.Seed(25, 5, 5)
			w.mustRun(t, all...)
			ids := w.xiaoqu.IDs("users")
			w.xiaoqu.Delete("users", ids[0])
			w.xiaoqu.Edit("users", ids[1], `{"name":"改"}`)
			w.mustRun(t, all...)
			w.equal(t, all...)
			if n := w.count(t, "select count(*) from xiaoqu.users where deleted_at is not null"); n != 1 {
				t.Errorf("%d tombstones, want 1", n)
			}
		})
	}
}
