package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// TestWhateverRecordIsAcceptedPostgreSQLTakes feeds the kept corpora and
// made-up records to both ways into the database, page by page: a record that
// was accepted and cannot be stored would lose its page, for ever.
func TestWhateverRecordIsAcceptedPostgreSQLTakes(t *testing.T) {
	const madeUp, perPage = 3000, 300
	records := kept(t)
	made := forge{rand.New(rand.NewPCG(20260915, 1))}
	for range madeUp {
		records = append(records, made.record())
	}
	m, err := Open(t.Context(), Options{URL: localpg.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	accepted := map[string]bool{}
	for page := range slices.Chunk(records, perPage) {
		if err := m.takes(t, page); err != nil {
			t.Fatalf("%v\nrecord %q", err, m.culprit(t, page))
		}
		for id := range NewBatch(page, time.UTC).IDs() {
			accepted[id] = true
		}
	}
	var rows int
	if err := m.pool.QueryRow(t.Context(), "select count(*) from xiaoqu.users").Scan(&rows); err != nil || rows != len(accepted) {
		t.Errorf("%d rows of %d accepted ids, %v", rows, len(accepted), err)
	}
	if len(accepted) < madeUp/10 {
		t.Errorf("only %d of %d records were accepted: the test shows little", len(accepted), len(records))
	}
}

// takes writes a page into the readers' table and into staging.
func (m *Mirror) takes(t *testing.T, page []json.RawMessage) error {
	t.Helper()
	at, err := m.Checkpoint(t.Context(), "users")
	if err != nil {
		return err
	}
	after := at
	after.Cursor, after.Pages = "c", at.Pages+1
	if at, _, err = m.Commit(t.Context(), Step{Before: at, After: after, Batch: NewBatch(page, time.UTC)}); err != nil {
		return fmt.Errorf("as a page of changes: %w", err)
	}
	p, err := m.BeginPass(t.Context(), at, PurposeVerify, "")
	if err != nil {
		return err
	}
	staged := p.At
	staged.Cursor = "c"
	if _, _, err = m.Stage(t.Context(), StageStep{Before: p, After: staged, Batch: NewBatch(page, time.UTC)}); err != nil {
		return fmt.Errorf("as a page of a full pass: %w", err)
	}
	return nil
}

// culprit finds the first record that is refused alone.
func (m *Mirror) culprit(t *testing.T, page []json.RawMessage) json.RawMessage {
	t.Helper()
	for _, raw := range page {
		if m.takes(t, []json.RawMessage{raw}) != nil {
			return raw
		}
	}
	return nil
}

// kept are the seeds of FuzzRow and what it once found.
func kept(t *testing.T) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, d := range dirty {
		all = append(all, json.RawMessage(d.record))
	}
	files, err := filepath.Glob("testdata/fuzz/FuzzRow/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(string(text), "[]byte(")
		raw, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(value), ")"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, json.RawMessage(raw))
	}
	return all
}

// forge makes records up that have what PostgreSQL minds, and often spoils them.
type forge struct{ *rand.Rand }

func (f forge) pick(from ...string) string { return from[f.IntN(len(from))] }

func (f forge) record() json.RawMessage {
	b := fmt.Appendf(nil, `{"id":%s`, f.pick(fmt.Sprint(f.Int64()), fmt.Sprintf(`"%d"`, f.IntN(5000)), f.text(), `"x`+strings.Repeat("长", f.IntN(670))+`"`))
	for range f.IntN(5) {
		b = fmt.Appendf(b, `,%s:%s`, f.pick(f.text(), `"modify_time"`, `"deleted_at"`, `"version"`, `"deletedAt"`, `"a"`, `""`), f.value(0))
	}
	b = append(b, '}')
	for f.IntN(4) == 0 {
		i := f.IntN(len(b))
		switch f.IntN(3) {
		case 0:
			b[i] = byte(f.IntN(256))
		case 1:
			b = slices.Delete(b, i, i+1)
		default:
			b = slices.Insert(b, i, f.pick(`\u0000`, "\x00", `\ud800`, "\xff", `"`, "0", ",", `\`, "\u2028")[0])
		}
		if len(b) == 0 {
			break
		}
	}
	return b
}

func (f forge) value(depth int) string {
	switch f.IntN(9) {
	case 0:
		return f.pick("1e400", "-0", "0.10", "1E+2", "1e1000", "-1.5e-1000", "1e131071", strings.Repeat("9", 1+f.IntN(1002)), "0."+strings.Repeat("0", f.IntN(1000))+"1", "1e-1001")
	case 1:
		return f.pick(`"0000-00-00"`, `"24989-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999-14:00"`, `"0001-01-01T00:00:00+14:00"`, `"2026-06-30T23:59:60Z"`,
			`"2026-01-01 24:00:00"`, "1757900000", "1757900000000", "-62135596800", `""`, `"4713-01-01 BC"`, `"infinity"`)
	case 2:
		return f.pick("true", "false", "null")
	case 3, 4:
		if depth < 6 {
			return "[" + f.value(depth+1) + "," + f.value(depth+1) + "]"
		}
		return strings.Repeat("[", 505) + strings.Repeat("]", 505)
	case 5, 6:
		return fmt.Sprintf(`{%s:%s,%[1]s:%s}`, f.text(), f.value(min(depth+2, 6)), f.value(6))
	default:
		return f.text()
	}
}

// text is a JSON string of odd characters, escaped or raw.
func (f forge) text() string {
	var b bytes.Buffer
	b.WriteByte('"')
	for range f.IntN(6) {
		switch f.IntN(6) {
		case 0:
			fmt.Fprintf(&b, `\u%04x`, f.IntN(1<<16))
		case 1:
			b.WriteString(f.pick(`\u0000`, `\\u0000`, `\ud83d\ude00`, `\udc00\ud800`, `\"`, `\/`, `\b`))
		case 2:
			b.WriteString(f.pick("👩‍👩‍👧", "𠮷", "\u2028", "\uFFFE", "\x7f", "'", "$1", "\xed\xa0\x80", "\xff"))
		default:
			b.WriteRune(rune(0x20 + f.IntN(0x3000)))
		}
	}
	b.WriteByte('"')
	return b.String()
}
