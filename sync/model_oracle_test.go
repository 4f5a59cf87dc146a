package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// rows reads the database past the line.
func (h *history) rows(sql string) [][]string {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	if h.db == nil || h.db.Ping(ctx) != nil {
		var err error
		if h.db, err = h.dial(ctx); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { _ = h.db.Close(ctx) })
	}
	result := h.db.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		h.t.Fatalf("%v\n%s", result.Err, sql)
	}
	rows := make([][]string, len(result.Rows))
	for i, row := range result.Rows {
		for _, v := range row {
			rows[i] = append(rows[i], string(v))
		}
	}
	return rows
}

// none fails when a query finds something.
func (h *history) none(what, sql string) {
	h.t.Helper()
	if found := h.rows(sql); len(found) > 0 {
		h.t.Fatalf("%s, %d times, first %.1000q", what, len(found), found[0])
	}
}

// keepAudit writes every change of a row down, in the transaction that made it.
func (h *history) keepAudit() {
	h.rows(`create table audit (n bigserial primary key, tx xid8 default pg_current_xact_id(), resource text, op text, id text, seq bigint, was timestamptz, deleted timestamptz,
		known boolean, reason text, same boolean, record jsonb)`)
	h.rows(`create function note() returns trigger language plpgsql as $$begin
		insert into public.audit (resource, op, id, seq, was, deleted, known, reason, same, record) values (tg_table_name, tg_op, coalesce(new.id, old.id),
			new.change_seq, old.deleted_at, new.deleted_at, old.id is not null, new.delete_reason,
			(old.record::text, old.deleted_at, old.modify_time, old.version, old.content_hash) is not distinct from
			(new.record::text, new.deleted_at, new.modify_time, new.version, new.content_hash), new.record);
		return null; end$$`)
	for _, r := range all {
		h.rows(`create trigger note after insert or update or delete on xiaoqu.` + r + ` for each row execute function note()`)
	}
}

// upstreamRow is what a record that the remote stamped says of itself.
type upstreamRow struct {
	Version   json.RawMessage `json:"version"`
	DeletedAt *string         `json:"deleted_at"`
}

func (u upstreamRow) version() string { return strings.Trim(string(u.Version), `"`) }

// claims holds after every run, whatever befell it: as of the cut-off that the
// mirror claims, it has every record in the version that upstream has. A page
// that was lost, or a token that moved before its rows, shows here.
func (h *history) claims() {
	h.t.Helper()
	for _, r := range all {
		claim := h.rows(`select floor(extract(epoch from complete_cutoff_at) * 1000)::bigint from xiaoqu_sync.state
			where resource = '` + r + `' and complete_cutoff_at is not null`)
		if len(claim) == 0 {
			continue
		}
		mirrored := map[string]string{}
		live := map[string]bool{}
		for _, row := range h.rows("select id, coalesce(version, ''), deleted_at is null from xiaoqu." + r) {
			mirrored[row[0]], live[row[0]] = row[1], row[2] == "t"
		}
		for id, raw := range h.xiaoqu.All(r) {
			var u upstreamRow
			if _, odd := h.stocks[r].odd[id]; odd || json.Unmarshal(raw, &u) != nil || len(u.version()) > len(claim[0][0]) || u.version() > claim[0][0] {
				continue // not stamped, or changed since
			}
			dead := u.DeletedAt != nil && *u.DeletedAt != ""
			if dead && live[id] || !dead && (!live[id] || mirrored[id] != u.version()) {
				h.t.Fatalf("%s %s: complete up to %s, says the mirror, and has version %q (live %v) of %s", r, id, claim[0][0], mirrored[id], live[id], raw)
			}
		}
	}
}

// settle leaves everything in peace and holds the mirror against upstream.
func (h *history) settle() {
	h.t.Helper()
	h.tell("peace")
	h.calm()
	h.maxBytes, h.limit, h.wait = 0, 100, 30*time.Second
	h.connectFor(10 * time.Second)
	h.reopen(h.t)
	h.peace()
	h.peace() // what came after the round that was in hand
	h.claims()
	h.equals(false)
	// Increments do not tell of records that vanished; a full pass does.
	h.xiaoqu.ExpireTokens()
	h.peace()
	h.equals(true)
	for r, o := range h.task(h.t.Context(), (*sync.Engine).Verify, all...) {
		if o.Result != sync.Verified {
			h.t.Fatalf("%s: verify: %s, %v, %+v", r, o.Result, o.Err, o.Difference)
		}
	}
	h.catchUp()
	h.audit()
	h.books()
	h.manners()
}

// peace is a run that nothing disturbs: it must succeed, or be held by the fuse
// for a person, who lets it through.
func (h *history) peace() {
	h.t.Helper()
	for r, o := range h.task(h.t.Context(), (*sync.Engine).Sync, all...) {
		if o.Result == sync.Held {
			o = h.acceptHeld(r)
		}
		h.tell("  %s: %s %v", r, o.Result, o.Err)
		if o.Result != sync.Synced || o.Err != nil {
			h.t.Fatalf("%s: in peace: %s, %v", r, o.Result, o.Err)
		}
	}
}

// acceptHeld is the person's part. What was staged may be lost, and is then
// staged once more.
func (h *history) acceptHeld(r string) sync.Outcome {
	o := h.task(h.t.Context(), (*sync.Engine).Accept, r)[r]
	if errors.Is(o.Err, mirror.ErrStagingLost) {
		h.tell("  %s: held, and its staging is lost", r)
		if o = h.task(h.t.Context(), (*sync.Engine).Sync, r)[r]; o.Result == sync.Held {
			o = h.task(h.t.Context(), (*sync.Engine).Accept, r)[r]
		}
	}
	return o
}

// equals holds the live rows against upstream's, digit for digit. Until a full
// pass the mirror still has what vanished, and only that.
func (h *history) equals(full bool) {
	h.t.Helper()
	for _, r := range all {
		s := h.stocks[r]
		want := map[string]any{}
		for id, raw := range h.xiaoqu.Live(r) {
			if o, odd := s.odd[id]; odd {
				raw = json.RawMessage(o.want)
			}
			if len(raw) > 0 {
				want[id] = exact(h.t, string(raw))
			}
		}
		got := map[string]any{}
		for _, row := range h.rows("select id, record from xiaoqu." + r + "_live") {
			if _, there := want[row[0]]; there || full || !s.gone[row[0]] {
				got[row[0]] = exact(h.t, row[1])
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			h.t.Fatalf("%s: the mirror is not upstream (-upstream +mirror), full pass %v, %d rows against %d:\n%.3000s", r, full, len(want), len(got), diff)
		}
		h.tombstones(r)
		h.kept(r)
	}
}

// tombstones holds that deleted rows are those that were deleted upstream, and
// that no tombstone was forgotten.
func (h *history) tombstones(r string) {
	h.t.Helper()
	s := h.stocks[r]
	dead := map[string]bool{}
	for _, row := range h.rows("select id, delete_reason from xiaoqu." + r + " where deleted_at is not null") {
		dead[row[0]] = true
		if _, odd := s.odd[row[0]]; !odd && !s.died[row[0]] && !s.gone[row[0]] {
			h.t.Fatalf("%s %s is marked as deleted (%s) and never was", r, row[0], row[1])
		}
	}
	for _, id := range s.dead {
		if !dead[id] && !s.purged && !h.plain.omitsTombstones {
			h.t.Fatalf("%s %s: its tombstone is missing", r, id)
		}
	}
}

// kept holds that a refused record is in quarantine, byte for byte.
func (h *history) kept(r string) {
	h.t.Helper()
	raws := map[string]bool{}
	for _, row := range h.rows("select convert_from(raw, 'UTF8') from xiaoqu_sync.quarantine where kind = 'refused' and resource = '" + r + "'") {
		raws[row[0]] = true
	}
	for id, o := range h.stocks[r].odd {
		if o.refused && !raws[o.raw] {
			h.t.Fatalf("%s %s is neither mirrored nor in quarantine: %.200s", r, id, o.raw)
		}
	}
}

// audit judges every change that was ever made to a row.
func (h *history) audit() {
	h.t.Helper()
	h.none("change_seq leapt or went back in commit order", `select * from (select resource, id, seq, lag(seq) over (partition by resource order by first, seq) as last
		from (select *, min(n) over (partition by tx) as first from audit where op <> 'DELETE') a) b where seq <> coalesce(last, 0) + 1 order by resource, seq`)
	h.none("an unchanged row was written", `select resource, id, seq, record from audit where op = 'UPDATE' and same`)
	h.none("the first deletion time moved", `select resource, id, was, deleted from audit where op = 'UPDATE' and was is not null and deleted is not null and was <> deleted`)
	h.none("a live row was removed", `select resource, id from audit where op = 'DELETE' and was is null`)
	if h.plain.exactTimes {
		h.none("a deletion time is not the tombstone's", `select resource, id, deleted, record from audit where reason = 'tombstone' and was is null
			and id not like 'odd-%' and deleted <> (record ->> 'deleted_at')::timestamptz`)
	}
	for _, row := range h.rows(`select resource, id, seq from audit where reason = 'absent'`) {
		s := h.stocks[row[0]]
		vanished := s.gone[row[1]] || h.plain.omitsTombstones && (s.died[row[1]] || s.odd[row[1]].raw != "")
		if !vanished {
			h.t.Fatalf("%s %s was taken for absent at change %s and never vanished", row[0], row[1], row[2])
		}
	}
}

// merging lists the modes whose counts also say what became of staged rows,
// which an earlier run may have received.
const merging = `('rebuild', 'apply', 'accept')`

// books holds that every record is accounted for in the run log.
func (h *history) books() {
	h.t.Helper()
	const rest = `received - staged - inserted - updated - deleted - revived - unchanged - duplicates - quarantined`
	h.none("a run's counts do not add up", `select * from xiaoqu_sync.runs
		where `+rest+` <> 0 and mode not in `+merging+` or `+rest+` > 0 order by id`)
	h.none("a run was left open", `select * from xiaoqu_sync.runs where ended_at is null or outcome = ''`)
	h.none("a run failed for want of a name", `select mode, outcome, code, message from xiaoqu_sync.runs where code in ('INTERNAL', 'DATABASE_INTERNAL')`)
	h.none("a full pass was left behind", `select * from xiaoqu_sync.passes`)
	h.none("a lease was left behind", `select * from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
}

// manners holds that the program kept the contract, but for what a fault makes
// of it: a stream whose rest is asked for, a session that the remote does not
// know to be initialized, an answer to a request that the remote made before it
// had answered initialize; and now and then a request that was given up and
// arrives behind the end of its session.
func (h *history) manners() {
	h.t.Helper()
	late := 0
	breaches := slices.DeleteFunc(h.xiaoqu.Breaches(), func(b string) bool {
		if strings.HasSuffix(b, "unknown session") {
			late++
			return late <= 3
		}
		return h.plain.eventIDs && strings.HasPrefix(b, "GET ") ||
			h.plain.unheard && strings.HasSuffix(b, "before notifications/initialized") ||
			h.plain.asksFirst && strings.HasPrefix(b, "response ") && strings.HasSuffix(b, "Mcp-Session-Id missing")
	})
	if len(breaches) > 0 {
		h.t.Fatalf("the contract was broken %d times, first: %s", len(breaches), breaches[0])
	}
}
