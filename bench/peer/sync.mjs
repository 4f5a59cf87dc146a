// What a user would write instead of xiaoqu-sync: the official MCP SDK, node-postgres,
// a table, an upsert for each record and a transaction for each page, with the
// checkpoint in it. Written straightforwardly, not badly: it keeps the contract, but
// for errors and rebuilds, which it leaves to the next run.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import pg from "pg";

const { XIAOQU_BASE_URL, XIAOQU_OPEN_KEY, XIAOQU_DATABASE_URL } = process.env;
const resource = process.argv[2];

const ensured = await fetch(`${XIAOQU_BASE_URL}/api/open/token/ensure`, {
  method: "POST",
  headers: { "X-Open-Key": XIAOQU_OPEN_KEY, "Content-Type": "application/json" },
  body: JSON.stringify({ scopeCode: "sync", principalType: "service", serviceName: "peer" }),
});
const { token } = await ensured.json();

const client = new Client({ name: "peer", version: "1.0.0" });
await client.connect(
  new StreamableHTTPClientTransport(new URL("/mcp", XIAOQU_BASE_URL), {
    requestInit: { headers: { Authorization: `Bearer ${token}`, "X-Mcp-Schema-Version": "2" } },
  }),
);

const db = new pg.Client(XIAOQU_DATABASE_URL);
await db.connect();
await db.query(`create schema if not exists peer`);
await db.query(`create table if not exists peer.state (resource text primary key, sync_token text, cursor text)`);
await db.query(`create table if not exists peer.${resource} (
  id text primary key, record jsonb not null, modify_time timestamptz, deleted_at timestamptz, version text,
  snapshot_id text, synced_at timestamptz not null default now())`);
await db.query(`create index if not exists ${resource}_modified on peer.${resource} (modify_time)`);

const upsert = {
  name: "upsert",
  text: `insert into peer.${resource} (id, record, modify_time, deleted_at, version, snapshot_id)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (id) do update set record = excluded.record, modify_time = excluded.modify_time,
      deleted_at = excluded.deleted_at, version = excluded.version, snapshot_id = excluded.snapshot_id, synced_at = now()`,
};

const { rows: states } = await db.query(`select sync_token, cursor from peer.state where resource = $1`, [resource]);
let { sync_token: syncToken, cursor } = states[0] ?? { sync_token: null, cursor: null };
let received = 0;
const began = process.hrtime.bigint();

for (let more = true; more; ) {
  const result = await client.callTool({
    name: `${resource}.changes.list`,
    arguments: { syncToken, cursor, limit: 200 },
  });
  if (result.isError) throw new Error(JSON.stringify(result.content));
  const page = result.structuredContent.data;
  more = page.has_more;
  cursor = more ? page.next_cursor : null;
  if (!more) syncToken = page.next_sync_token;
  await db.query("begin");
  for (const record of page.records) {
    await db.query({
      ...upsert,
      values: [String(record.id), JSON.stringify(record), record.modify_time, record.deleted_at, String(record.version), page.snapshot_id],
    });
  }
  await db.query(
    `insert into peer.state (resource, sync_token, cursor) values ($1, $2, $3)
     on conflict (resource) do update set sync_token = excluded.sync_token, cursor = excluded.cursor`,
    [resource, syncToken, cursor],
  );
  await db.query("commit");
  received += page.records.length;
}

const seconds = Number(process.hrtime.bigint() - began) / 1e9;
console.log(JSON.stringify({ rows: received, seconds }));
await db.end();
await client.close();
