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
type rendered struct{ pages [][]json.RawMessage }

// made makes so many contracts of about 700 bytes; another version of the same
// ones differs in one field.
func made(rows, version int) *rendered {
	r := &rendered{}
	for from := 0; from < rows; from += pageSize {
		page := make([]json.RawMessage, min(pageSize, rows-from))
		for i := range page {
			page[i] = contract(from+i, version)
		}
		r.pages = append(r.pages, page)
	}
	return r
}

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
	at := 0
	if q.Cursor != "" {
		var err error
		if at, err = strconv.Atoi(q.Cursor); err != nil {
			return nil, err
		}
	}
	p := &remote.Page{Records: r.pages[at], SnapshotID: "s"}
	for _, record := range p.Records {
		p.Bytes += int64(len(record))
	}
	if p.HasMore = at+1 < len(r.pages); p.HasMore {
		p.NextCursor = strconv.Itoa(at + 1)
	} else {
		p.NextSyncToken = "t"
	}
	return p, nil
}

// Renew has nothing to renew.
func (r *rendered) Renew(context.Context, int) error { return nil }
