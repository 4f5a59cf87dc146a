package mirror_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// person is a record of about 700 bytes.
func person(id, version int) json.RawMessage {
	return fmt.Appendf(nil, `{"id":"18300000%08d","name":"张伟强","mobile":"138****1234","gender":"male",`+
		`"department":{"id":"9007199254740993","name":"朝阳一店","path":["总部","华北","北京","朝阳"]},"roles":["agent","manager"],`+
		`"address":"北京市朝阳区建国路88号SOHO现代城A座1802室","employed_at":"2021-03-04T09:00:00+08:00","salary_base":12500.50,`+
		`"commission_rate":0.035,"tags":["金牌经纪人","带看冠军"],"contacts":[{"type":"wechat","value":"wx_123"},{"type":"email","value":"zhang@example.com"}],`+
		`"status":"active","remark":"负责朝阳区东部板块，熟悉学区房政策","modify_time":"2026-09-14T18:20:31.123456+08:00","deleted_at":null,"version":"%d"}`, id, version)
}

func people(from, n, version int) []json.RawMessage {
	records := make([]json.RawMessage, n)
	for i := range records {
		records[i] = person(from+i, version)
	}
	return records
}

const pageSize = 200

func BenchmarkDecodeRows(b *testing.B) {
	records := people(0, pageSize, 1)
	zone := mirror.Zone(b)
	b.SetBytes(int64(len(records[0]) * pageSize))
	b.ReportAllocs()
	for b.Loop() {
		if n := mirror.DecodeRows(records, zone); n != pageSize {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*pageSize), "µs/record")
}

func BenchmarkCommit(b *testing.B) {
	pages := map[string]func(i int) []json.RawMessage{
		"insert":    func(i int) []json.RawMessage { return people(i*pageSize, pageSize, 1) },
		"update":    func(i int) []json.RawMessage { return people(0, pageSize, i) },
		"unchanged": func(int) []json.RawMessage { return people(0, pageSize, 0) },
	}
	for _, name := range []string{"insert", "update", "unchanged"} {
		b.Run(name, func(b *testing.B) {
			f := setUp(b)
			c := f.checkpoint(b)
			commit := func(i int) {
				s := mirror.Step{Before: c, After: c, Batch: mirror.NewBatch(pages[name](i), time.UTC)}
				after, _, err := f.Commit(b.Context(), s)
				if err != nil {
					b.Fatal(err)
				}
				c = after
			}
			commit(0)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				commit(i)
			}
		})
	}
}
