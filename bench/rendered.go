package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// rendered is a remote without a network: pages that were made beforehand, given
// again and again. It is a sync.Source.
type rendered struct {
	count int
	page  func(n int) []json.RawMessage
	// expired refuses every sync token, so that a sync becomes a rebuild.
	expired bool
}

// made makes so many contracts of about 700 bytes; another version of the same
// ones differs in one field.
func made(rows, version int) *rendered {
	r := madeOnDemand(rows, 0)
	pages := make([][]json.RawMessage, r.count)
	for n := range pages {
		pages[n] = contracts(n, rows, func(int) int { return version })
	}
	r.page = func(n int) []json.RawMessage { return pages[n] }
	return r
}

// madeOnDemand is for as many rows as memory would not hold: making them costs a
// microsecond a row. So many percent of them, spread evenly, differ from those of
// 0 percent, and from those of the call before.
func madeOnDemand(rows, percent int) *rendered {
	r := &rendered{count: (rows + pageSize - 1) / pageSize}
	r.page = func(n int) []json.RawMessage {
		return contracts(n, rows, func(i int) int {
			if i%100 < percent {
				return 1 + percent
			}
			return 1
		})
	}
	return r
}

func contracts(page, rows int, version func(i int) int) []json.RawMessage {
	from := page * pageSize
	records := make([]json.RawMessage, min(pageSize, rows-from))
	for i := range records {
		records[i] = contract(from+i, version(from+i))
	}
	return records
}

func idOf(n int) string { return strconv.Itoa(1852000000000000007 + n*4194307) }

func contract(n, version int) json.RawMessage {
	return fmt.Appendf(nil, `{"id":%d,"contract_no":"XQ-HT-202604-%06d","property_id":%d,"signer_id":%d,"customer":"欧阳建国","customer_mobile":"138%08d",`+
		`"start_date":"2026-04-01","end_date":"2028-03-31","term_months":24,"amount":%d.50,"deposit":12800.00,"payment_cycle":"季付","status":"执行中",`+
		`"terms":"乙方每周清洁 %d 次，甲方按“季付”结算；逾期每日加收 0.05%% 违约金。","attachments":[{"name":"合同正本.pdf","size":%d}],`+
		`"modify_time":"2026-09-14T18:20:31.123+08:00","version":%d,"deleted_at":null}`,
		1852000000000000007+n*4194307, n, 1839000000000000003+n*7, 1826000000000000001+n*3, n, 3000+n%497000, 1+n%7, 20000+n, version)
}

// Identity is a service's that may sync.
func (r *rendered) Identity(context.Context) (remote.Identity, error) {
	return remote.Identity{PrincipalType: "tenant_service", Capabilities: []string{"SYNC"}}, nil
}

// Tools are those of the contract.
func (r *rendered) Tools(context.Context) ([]string, error) {
	var tools []string
	for _, name := range resources(3) {
		tools = append(tools, name+".changes.list")
	}
	return tools, nil
}

// Changes gives the next page, whatever token the round began with. The records
// are shared: who reads them does not write into them.
func (r *rendered) Changes(_ context.Context, q remote.Query) (*remote.Page, error) {
	if r.expired && q.SyncToken != "" {
		return nil, &remote.Error{Code: remote.CursorExpired}
	}
	at := 0
	if q.Cursor != "" {
		var err error
		if at, err = strconv.Atoi(q.Cursor); err != nil {
			return nil, err
		}
	}
	p := &remote.Page{Records: r.page(at), SnapshotID: "s"}
	for _, record := range p.Records {
		p.Bytes += int64(len(record))
	}
	if p.HasMore = at+1 < r.count; p.HasMore {
		p.NextCursor = strconv.Itoa(at + 1)
	} else {
		p.NextSyncToken = "t"
	}
	return p, nil
}

// Renew has nothing to renew.
func (r *rendered) Renew(context.Context, int) error { return nil }
