// A schema filled with tasks as nodes would have left them, quickly: its indexes are made anew afterwards, and are the same.
/** How many tasks a caller may have live, and how many a node runs at a time. */
const liveOfCaller = 100;
const placesOfNode = 16;
const deepCallers = 100;
const piece = 250_000;

/** Who has what in a schema of this size. */
export function layout({ live, ended }) {
  const crowdCallers = Math.max(1, Math.floor(live / 2 / liveOfCaller));
  const held = Math.floor((live + 1) / 4);
  return { live, ended, total: live + ended, crowdCallers, held, workers: Math.ceil(held / placesOfNode) };
}

/**
 * Of those that are live, a half waits in the project `deep` for a hundred callers, a quarter in the project `crowd`
 * for callers that have a hundred live tasks each, and a quarter is held for the same ones, sixteen by a worker. Those
 * that have ended are the crowd's, and expire in a day. Live and ended, and everybody's, lie side by side. Returns how large
 * the database is.
 */
export async function fill(server, schema, size) {
  const clients = await Promise.all([connect(server), connect(server)]);
  try {
    const [client] = clients;
    await client.query("alter system set autovacuum = off");
    await client.query("select pg_reload_conf()");
    const before = await shapesOf(client, schema);
    await client.query(before.map(({ drop }) => drop).join(";"));
    const parts = layout(size);
    const at = `${schema}.now_ms()`;
    await together(clients, [
      ...pieces(parts, (from, to) => tasksOf(schema, parts, { from, to, at })),
      ...pieces(parts, (from, to) => inputsOf(schema, from, to)),
      ...pieces(parts, (from, to) => outcomesOf(schema, parts, from, to)),
    ]);
    await together(
      clients,
      before.map(({ make }) => make),
    );
    await client.query(workersOf(schema));
    await client.query(`select setval(pg_get_serial_sequence('${schema}.tasks', 'number'), ${parts.total})`);
    const after = await shapesOf(client, schema);
    if (JSON.stringify(after) !== JSON.stringify(before)) throw new Error("the indexes are not those of the schema");
    await together(
      clients,
      ["tasks", "inputs", "outcomes", "workers"].map((table) => `vacuum analyze ${schema}.${table}`),
    );
    await client.query("alter system reset autovacuum");
    await client.query("select pg_reload_conf()");
    await client.query("checkpoint");
    const { rows } = await client.query("select pg_database_size(current_database())::float8 as bytes");
    return rows[0].bytes;
  } finally {
    for (const client of clients) await client.end();
  }
}

async function connect(server) {
  const client = await server.connect();
  // Who fills it looks after what belongs together; the disk is waited for at the end.
  await client.query("set session_replication_role = replica; set synchronous_commit = off");
  return client;
}

/** Every index of the tasks but the one by number, which costs nothing to fill in its order. */
async function shapesOf(client, schema) {
  const { rows } = await client.query(
    `select c.relname as name, pg_get_indexdef(c.oid) as index, k.conname as constraint, pg_get_constraintdef(k.oid) as terms
     from pg_index as i join pg_class as c on c.oid = i.indexrelid left join pg_constraint as k on k.conindid = c.oid and k.contype = 'u'
     where i.indrelid = '${schema}.tasks'::regclass and not i.indisprimary order by c.relname`,
  );
  return rows.map(({ name, index, constraint, terms }) =>
    constraint === null
      ? { drop: `drop index ${schema}.${name}`, make: index }
      : {
          drop: `alter table ${schema}.tasks drop constraint ${constraint}`,
          // The index alone lets others be made at the same time.
          make: `${index}; alter table ${schema}.tasks add constraint ${constraint} ${terms.split(" ")[0]} using index ${name}`,
        },
  );
}

/** What is next is done by whoever is free. */
async function together(clients, statements) {
  const left = [...statements];
  await Promise.all(
    clients.map(async (client) => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await client.query(next);
    }),
  );
}

function pieces({ total }, statementOf) {
  return Array.from({ length: Math.ceil(total / piece) }, (_, n) =>
    statementOf(n * piece + 1, Math.min(total, (n + 1) * piece)),
  );
}

/** `l` is the how manieth live one it is, and `e` the how manieth that has ended. */
function numbered({ live, total }, from, to) {
  return `(select n, n * ${live} / ${total} as l, n - n * ${live} / ${total} as e,
           n * ${live} / ${total} > (n - 1) * ${live} / ${total} as is_live from generate_series(${from}::bigint, ${to}) as n) as one`;
}

function tasksOf(schema, parts, { from, to, at }) {
  const { crowdCallers, total } = parts;
  const isHeld = "is_live and l % 4 = 3";
  const ifHeld = (value) => `case when ${isHeld} then ${value} end`;
  const ifEnded = (value) => `case when not is_live then ${value} end`;
  return `
    insert into ${schema}.tasks (number, task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms, status,
      fence, attempts, not_before, worker, lease_until, questions, open_questions, bytes, created_at, updated_at, started_at,
      finished_at, expires_at, is_call, door, is_endless, is_proven) overriding system value
    select n, gen_random_uuid()::text,
      case when not is_live then 'crowd ' || (e % ${crowdCallers}) when l % 4 < 2 then 'deep ' || (l / 4 % ${deepCallers}) else 'crowd ' || (l / 4 % ${crowdCallers}) end,
      case when is_live and l % 4 < 2 then 'deep' else 'crowd' end, 'echo', md5(n::text), 'filled', 86400000, true, 1, 1000,
      case when not is_live then 'completed' when ${isHeld} then 'working' else 'queued' end,
      1, 1, ${at} - ${total} + n, ${ifHeld(`'worker ' || (l / 4 / ${placesOfNode})`)}, ${ifHeld(`${at} + 86400000`)},
      '[]', 0, 200, ${at} - ${total} + n, ${at}, ${at}, ${ifEnded(at)}, ${ifEnded(`${at} + 86400000 + n`)}, false, 'mcp', false, false
    from ${numbered(parts, from, to)}`;
}

/** All of them live. */
function workersOf(schema) {
  return `insert into ${schema}.workers (worker, lease_until)
    select distinct worker, ${schema}.now_ms() + 86400000 from ${schema}.tasks where worker is not null`;
}

const body = "x".repeat(40);

function inputsOf(schema, from, to) {
  return `insert into ${schema}.inputs (number, input) select n, '{"text":"${body}"}' from generate_series(${from}, ${to}) as n`;
}

function outcomesOf(schema, parts, from, to) {
  const outcome = { ending: "completed", data: { text: body }, messages: [], log: [], durationMs: 1 };
  return `insert into ${schema}.outcomes (number, outcome) select n, '${JSON.stringify(outcome)}' from ${numbered(parts, from, to)} where not is_live`;
}
