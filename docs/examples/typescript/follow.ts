// Follows the changes of one resource of the mirror and prints them. It keeps its
// place in a table of its own, so that it can stop at any time.
//
//   npm ci && DATABASE_URL=postgres://… node --import ts-blank-space/register follow.ts contracts
//
// Node 20 runs it so; from 22.18 on, plain `node follow.ts` does.
import pg from 'pg';

const resource = process.argv[2];
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await client.query('create table if not exists mirror_followers (resource text primary key, change_seq bigint not null)');

// batch deals with some changes and moves the place, in one transaction.
async function batch(): Promise<number> {
  await client.query('begin');
  try {
    const place = await client.query('select change_seq from mirror_followers where resource = $1 for update', [resource]);
    const changes = await client.query(
      `select id, deleted_at is not null as deleted, change_seq from xiaoqu.${client.escapeIdentifier(resource + '_all')}
       where change_seq > $1 order by change_seq limit 500`,
      [place.rows[0]?.change_seq ?? 0],
    );
    for (const row of changes.rows) {
      console.log(resource, row.id, row.deleted ? 'deleted' : 'changed');
    }
    if (changes.rows.length > 0) {
      await client.query(
        'insert into mirror_followers values ($1, $2) on conflict (resource) do update set change_seq = excluded.change_seq',
        [resource, changes.rows.at(-1).change_seq], // a bigint arrives as a string: keep it one
      );
    }
    await client.query('commit');
    return changes.rows.length;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

while ((await batch()) > 0);
if (process.env.ONCE) {
  await client.end();
} else {
  // A notice is a hint: without one we look each minute.
  let busy = Promise.resolve();
  const look = () => (busy = busy.then(async () => { while ((await batch()) > 0); }).catch((error) => { console.error(error); process.exit(1); }));
  client.on('notification', look);
  await client.query('listen xiaoqu_changes');
  setInterval(look, 60_000);
  look();
}
