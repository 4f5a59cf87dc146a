package mirror

import "github.com/jackc/pgx/v5/pgtype"

// fence compares the state row with where the step began, and moves it. It needs
// a tally of what the step changes.
const fence = `fence as (
    update {sync}.state s
    set epoch = s.epoch + 1,
        phase = $3::text, sync_token = $4::text, cursor = $5::text, snapshot_id = $6::text,
        data_cutoff_at = $7::timestamptz, pages = $8::bigint,
        change_seq = s.change_seq + y.changed,
        live_rows = s.live_rows + y.inserted + y.revived - y.fell,
        deleted_rows = s.deleted_rows + y.deleted - y.revived,
        last_commit_at = now(),
        last_success_at = case when $9::boolean then now() else s.last_success_at end,
        complete_cutoff_at = case when $9::boolean then coalesce($7::timestamptz, s.data_cutoff_at) else s.complete_cutoff_at end,
        restarts = case when $9::boolean then 0 else s.restarts end,
        last_error_code = case when $9::boolean then '' else s.last_error_code end,
        last_error_message = case when $9::boolean then '' else s.last_error_message end,
        last_error_request_id = case when $9::boolean then '' else s.last_error_request_id end,
        last_error_at = case when $9::boolean then null else s.last_error_at end
    from tally y
    where s.resource = $1::text and s.epoch = $2::bigint
    returning s.epoch, s.change_seq - y.changed as base
)`

// told tells who listens, when it commits.
const told = `told as materialized (
    select pg_catalog.pg_notify($11::text, pg_catalog.json_build_object('resource', $1::text, 'change_seq', f.base + y.changed)::text)
    from fence f cross join tally y where y.changed > 0
)`

// fenceArguments are the parameters 1 to 11 of fence, told and what is written
// with them.
func fenceArguments(step Step, channel string) []argument {
	after := step.After
	return []argument{
		{pgtype.TextOID, after.Resource},
		{pgtype.Int8OID, step.Before.Epoch},
		{pgtype.TextOID, string(after.Phase)},
		{pgtype.TextOID, after.SyncToken},
		{pgtype.TextOID, after.Cursor},
		{pgtype.TextOID, after.SnapshotID},
		{pgtype.TimestamptzOID, after.DataCutoffAt},
		{pgtype.Int8OID, after.Pages},
		{pgtype.BoolOID, step.Last},
		{pgtype.TextOID, step.snapshot()},
		{pgtype.TextOID, channel},
	}
}
