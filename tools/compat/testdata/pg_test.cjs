// What programs do with node-postgres, its cursors, streams, copies and pools.
const assert = require('node:assert')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const QueryStream = require('pg-query-stream')
const copy = require('pg-copy-streams')
const report = require('./report.cjs')
const { fields, loginFields, types } = report

// withClient gives a test a session of its own.
const withClient = (test, config) => async () => {
  const client = new Client(config)
  await client.connect()
  try {
    return await test(client)
  } finally {
    await client.end()
  }
}

const refused = async promise => fields(await promise.then(() => assert.fail('no error'), error => error))
const notAdmitted = config => new Client(config).connect().then(() => assert.fail('no error'), loginFields)
const rows = async (client, ...query) => (await client.query(...query)).rows
// busy waits until a session runs a query.
const busy = async (client, process) => {
  while ((await rows(client, "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND wait_event = 'PgSleep'", [process])).length === 0);
}
const shape = result => ({ rows: result.rows, command: result.command, count: result.rowCount, fields: result.fields.map(f => [f.name, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format, f.columnID]) })

const tests = {
  'a simple query': withClient(async c => shape(await c.query('SELECT 1 AS one, NULL::text AS nothing'))),
  'several statements': withClient(async c => (await c.query("SELECT 1; CREATE TEMP TABLE s (n int); INSERT INTO s VALUES (1), (2); SELECT n FROM s ORDER BY n; SELECT 'x'")).map(shape)),
  'an error ends a batch': withClient(async c => [await refused(c.query('SELECT 1; SELECT 1/0; SELECT 2')), await rows(c, 'SELECT 3 AS n')]),
  'an empty query': withClient(async c => [shape(await c.query('')), shape(await c.query('-- only a comment')), shape(await c.query(';;'))]),
  'parameters': withClient(async c => shape(await c.query('SELECT $1::int + 1 AS a, $2::text AS b, $3::jsonb AS c, $4::int[] AS d', [41, "ä'\\", { x: [1] }, [1, null, 3]]))),
  'a parameter that is wrong': withClient(async c => [await refused(c.query('SELECT $1::int', ['x'])), await rows(c, 'SELECT 1 AS n')]),
  'too few parameters': withClient(async c => [await refused(c.query('SELECT $1::int, $2::int', [1])), await rows(c, 'SELECT 1 AS n')]),
  'thirty thousand parameters': withClient(async c => (await c.query(`SELECT count(*)::int AS n FROM (VALUES ${Array.from({ length: 30000 }, (_, i) => `($${i + 1}::int)`).join(',')}) v`, Array.from({ length: 30000 }, (_, i) => i))).rows),
  'binary results': withClient(async c => shape(await c.query({ text: "SELECT 1::int4 AS a, 2.5::float8 AS b, true AS c, 'x'::text AS d", binary: true }))),
  'rows as arrays': withClient(async c => rows(c, { text: 'SELECT 1 AS a, 2 AS a', rowMode: 'array' })),
  'named statements': withClient(async c => {
    const all = []
    for (let n = 0; n < 20; n++) all.push(await rows(c, { name: 'twice', text: 'SELECT $1::int * 2 AS n', values: [n] }))
    return all
  }),
  'a named statement after an error': withClient(async c => {
    await refused(c.query({ name: 'half', text: 'SELECT 10 / $1::int AS n', values: [0] }))
    return rows(c, { name: 'half', text: 'SELECT 10 / $1::int AS n', values: [5] })
  }),
  'a named statement whose table changes': withClient(async c => {
    await c.query('CREATE TEMP TABLE changing AS SELECT 1 AS a')
    const before = await rows(c, { name: 'all', text: 'SELECT * FROM changing', values: [] })
    await c.query('ALTER TABLE changing ADD b int')
    return [before, await refused(c.query({ name: 'all', text: 'SELECT * FROM changing', values: [] })), await rows(c, 'SELECT 1 AS n')]
  }),
  'queries sent ahead': withClient(async c => Promise.all(Array.from({ length: 200 }, (_, n) => rows(c, 'SELECT $1::int AS n', [n])))),
  'queries sent ahead with errors between': withClient(async c => Promise.all(Array.from({ length: 60 }, (_, n) => c.query('SELECT 100 / $1::int AS n', [n % 3]).then(r => r.rows, fields)))),
  'PREPARE and EXECUTE': withClient(async c => {
    await c.query('PREPARE p (int) AS SELECT $1 + 1 AS n')
    const answer = await rows(c, 'EXECUTE p (1)')
    await c.query('DEALLOCATE p')
    return [answer, await refused(c.query('EXECUTE p (1)'))]
  }),
  'errors in full': withClient(async c => {
    await c.query('CREATE TEMP TABLE e (n int PRIMARY KEY CHECK (n > 0), t text NOT NULL)')
    await c.query("INSERT INTO e VALUES (1, 'x')")
    const all = []
    for (const sql of ["INSERT INTO e VALUES (1, 'y')", "INSERT INTO e VALUES (-1, 'y')", 'INSERT INTO e VALUES (2)', 'SELECT nothing', 'SELEC', 'SELECT * FROM nowhere', "SELECT 'x'::int", 'SELECT pg_typeof()',
      "DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = 'ABCDE', DETAIL = 'd', HINT = 'h', COLUMN = 'c', TABLE = 't', SCHEMA = 's', CONSTRAINT = 'k', DATATYPE = 'y'; END $$"]) {
      all.push(await refused(c.query(sql)), await refused(c.query(sql, [])))
    }
    return all
  }),
  'notices': withClient(async c => {
    const heard = []
    c.on('notice', notice => heard.push(fields(notice)))
    await c.query("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two' USING HINT = 'h'; END $$; DROP TABLE IF EXISTS nowhere")
    return heard
  }),
  'transactions': withClient(async c => {
    await c.query('CREATE TEMP TABLE t (n int)')
    await c.query('BEGIN')
    await c.query('INSERT INTO t VALUES (1)')
    await c.query('SAVEPOINT a')
    const first = await refused(c.query('INSERT INTO t VALUES (1/0)'))
    const second = await refused(c.query('SELECT 1'))
    await c.query('ROLLBACK TO a')
    await c.query('COMMIT')
    return [first, second, await rows(c, 'SELECT * FROM t'), (await c.query('ROLLBACK')).command]
  }),
  'COMMIT of a failed transaction': withClient(async c => {
    await c.query('BEGIN')
    await refused(c.query('SELECT 1/0'))
    return (await c.query('COMMIT')).command
  }),
  'a serialization failure': withClient(a => withClient(async b => {
    await a.query('DROP TABLE IF EXISTS serial; CREATE TABLE serial (n int); INSERT INTO serial VALUES (1)')
    for (const c of [a, b]) {
      await c.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await c.query('SELECT * FROM serial')
    }
    await a.query('UPDATE serial SET n = 2')
    await a.query('COMMIT')
    const failed = await refused(b.query('UPDATE serial SET n = 3'))
    await b.query('ROLLBACK')
    return [failed, await rows(b, 'SELECT n FROM serial')]
  })()),
  'a lock waits': withClient(a => withClient(async b => {
    await a.query('SELECT pg_advisory_lock(77)')
    const waiting = b.query('SELECT pg_advisory_lock(77), 5 AS n')
    await a.query('SELECT pg_sleep(0.1)')
    const free = await rows(a, 'SELECT pg_try_advisory_lock(78) AS free')
    await a.query('SELECT pg_advisory_unlock(77)')
    return [free, (await waiting).rows[0].n]
  })()),
  'a deadlock': withClient(a => withClient(async b => {
    await a.query('DROP TABLE IF EXISTS dead; CREATE TABLE dead (n int PRIMARY KEY, v int); INSERT INTO dead VALUES (1), (2)')
    await a.query('BEGIN')
    await b.query('BEGIN')
    await a.query('UPDATE dead SET v = 1 WHERE n = 1')
    await b.query('UPDATE dead SET v = 1 WHERE n = 2')
    const both = [a.query('UPDATE dead SET v = 2 WHERE n = 2'), b.query('UPDATE dead SET v = 2 WHERE n = 1')]
    const outcomes = (await Promise.allSettled(both)).map(o => o.reason?.code ?? 'done').sort()
    await a.query('ROLLBACK')
    await b.query('ROLLBACK')
    return outcomes
  })()),
  'LISTEN and NOTIFY': withClient(a => withClient(async b => {
    const heard = []
    const enough = new Promise(resolve => a.on('notification', n => { heard.push([n.channel, n.payload]); if (heard.length === 5) resolve() }))
    await a.query('LISTEN news')
    for (let n = 0; n < 4; n++) await b.query('SELECT pg_notify($1, $2)', ['news', `n${n} ä`])
    await b.query('BEGIN')
    await b.query('NOTIFY news')
    await b.query('COMMIT')
    await enough
    await a.query('UNLISTEN *')
    return heard
  })()),
  'a cursor': withClient(async c => {
    const cursor = c.query(new Cursor('SELECT generate_series(1, $1::int) AS n', [25]))
    const sizes = []
    for (;;) {
      const part = await cursor.read(7)
      sizes.push(part.map(r => r.n))
      if (part.length === 0) break
    }
    await cursor.close()
    return [sizes, await rows(c, 'SELECT 1 AS n')]
  }),
  'a cursor left early': withClient(async c => {
    const cursor = c.query(new Cursor('SELECT generate_series(1, 1000000) AS n'))
    const part = await cursor.read(3)
    await cursor.close()
    return [part, await rows(c, 'SELECT 1 AS n')]
  }),
  'a cursor that fails': withClient(async c => {
    const cursor = c.query(new Cursor('SELECT 10 / (5 - n) AS n FROM generate_series(1, 9) n'))
    const first = await cursor.read(2)
    return [first, await refused(cursor.read(20)), await rows(c, 'SELECT 1 AS n')]
  }),
  'SQL cursors': withClient(async c => {
    await c.query('BEGIN')
    await c.query('DECLARE "My C" SCROLL CURSOR WITH HOLD FOR SELECT generate_series(1, 10) AS n')
    const parts = [await rows(c, 'FETCH 3 FROM "My C"'), await rows(c, 'FETCH LAST IN "My C"'), await rows(c, 'FETCH BACKWARD 2 FROM "My C"'), (await c.query('MOVE FIRST IN "My C"')).rowCount]
    await c.query('COMMIT')
    return [parts, await rows(c, 'FETCH ALL FROM "My C"'), (await c.query('CLOSE "My C"')).command]
  }),
  'a stream of a hundred thousand rows': withClient(async c => {
    let sum = 0
    for await (const row of c.query(new QueryStream('SELECT generate_series(1, $1::int) AS n', [100000], { batchSize: 1000 }))) sum += row.n
    return sum
  }),
  'a stream destroyed half-way': withClient(async c => {
    const stream = c.query(new QueryStream('SELECT generate_series(1, 1000000) AS n'))
    for await (const row of stream) if (row.n === 500) break
    return rows(c, 'SELECT 1 AS n')
  }),
  'COPY in': withClient(async c => {
    await c.query('CREATE TEMP TABLE i (n int, t text)')
    await pipeline(Readable.from(Array.from({ length: 5000 }, (_, n) => `${n}\trow ${n} ä\n`)), c.query(copy.from('COPY i FROM STDIN')))
    return rows(c, 'SELECT count(*), sum(n), max(t) FROM i')
  }),
  'COPY in that fails': withClient(async c => {
    await c.query('CREATE TEMP TABLE i (n int)')
    const failed = await refused(pipeline(Readable.from(['1\n', 'x\n', '3\n']), c.query(copy.from('COPY i FROM STDIN'))))
    return [failed, await rows(c, 'SELECT count(*) FROM i')]
  }),
  'COPY in given up': withClient(async c => {
    await c.query('CREATE TEMP TABLE i (n int)')
    const stream = c.query(copy.from('COPY i FROM STDIN'))
    stream.on('error', () => {})
    stream.write('1\n')
    await new Promise(resolve => { stream.on('close', resolve); stream.destroy() })
    return rows(c, 'SELECT count(*) FROM i')
  }),
  'COPY out': withClient(async c => {
    const parts = []
    await pipeline(c.query(copy.to("COPY (SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n) TO STDOUT (FORMAT csv)")), new Writable({ write: (part, _, done) => { parts.push(part); done() } }))
    return [Buffer.concat(parts).toString(), await rows(c, 'SELECT 1 AS n')]
  }),
  'COPY out that fails': withClient(async c => [await refused(pipeline(c.query(copy.to('COPY (SELECT 10 / (5 - n) FROM generate_series(1, 9) n) TO STDOUT')), new Writable({ write: (_, __, done) => done() }))), await rows(c, 'SELECT 1 AS n')]),
  'COPY from one session to another': withClient(a => withClient(async b => {
    await b.query('CREATE TEMP TABLE target (n int, v bytea)')
    await pipeline(a.query(copy.to("COPY (SELECT n, decode(md5(n::text), 'hex') FROM generate_series(1, 30000) n) TO STDOUT (FORMAT binary)")), b.query(copy.from('COPY target FROM STDIN (FORMAT binary)')))
    return rows(b, "SELECT count(*), md5(string_agg(encode(v, 'hex'), '' ORDER BY n)) FROM target")
  })()),
  'large objects': withClient(async c => {
    await c.query('BEGIN')
    const [{ oid }] = await rows(c, 'SELECT lo_from_bytea(0, $1) AS oid', [Buffer.alloc(300000, 'ab')])
    const [{ fd }] = await rows(c, 'SELECT lo_open($1, 393216) AS fd', [oid])
    await c.query('SELECT lo_lseek($1, 299990, 0)', [fd])
    const end = await rows(c, 'SELECT loread($1, 100) AS part', [fd])
    await c.query('SELECT lo_unlink($1)', [oid])
    await c.query('COMMIT')
    return end
  }),
  'a value of fifty megabytes': withClient(async c => {
    const [{ t }] = await rows(c, "SELECT repeat('x', 50000000) AS t")
    const [{ n }] = await rows(c, 'SELECT length($1::text) AS n', [t])
    return [t.length, n]
  }),
  'session settings': withClient(async c => {
    await c.query("SET TIME ZONE 'Asia/Tokyo'; SET search_path TO pg_temp, public; SET datestyle TO 'German'")
    const set = await rows(c, "SELECT current_setting('TimeZone') AS z, current_setting('search_path') AS s, now()::date - current_date AS d, '2024-02-29'::date::text AS t")
    await c.query('RESET ALL')
    return set
  }),
  'settings at the start': withClient(c => rows(c, "SELECT current_setting('application_name') AS a, current_setting('statement_timeout') AS t, current_setting('lock_timeout') AS l, current_setting('idle_in_transaction_session_timeout') AS i, current_setting('work_mem') AS w"),
    { application_name: 'a program', statement_timeout: 12345, lock_timeout: 321, idle_in_transaction_session_timeout: 5432, options: '-c work_mem=7MB' }),
  'a statement timeout': withClient(async c => [await refused(c.query('SELECT pg_sleep(10)')), await rows(c, 'SELECT 1 AS n')], { statement_timeout: 100 }),
  'a cancelled query': withClient(a => withClient(async b => {
    const running = a.query('SELECT pg_sleep(60)').catch(fields)
    await busy(b, a.processID)
    const canceller = new Client()
    canceller.connection.on('connect', () => canceller.connection.cancel(a.processID, a.secretKey))
    canceller.connection.connect(Number(process.env.PGPORT), process.env.PGHOST)
    canceller.connection.on('error', () => {})
    return [await running, await rows(a, 'SELECT 1 AS n')]
  })()),
  'a terminated session': async () => {
    const a = new Client()
    await a.connect()
    const ended = new Promise(resolve => a.on('error', resolve))
    await withClient(b => b.query('SELECT pg_terminate_backend($1)', [a.processID]))()
    return fields(await ended)
  },
  'a wrong password': async () => notAdmitted({ password: 'wrong' }),
  'an unknown database': async () => notAdmitted({ database: 'nowhere' }),
  'an unknown role': async () => notAdmitted({ user: 'nobody at all' }),
  'a pool of many': async () => {
    const pool = new Pool({ max: 20 })
    const answers = await Promise.all(Array.from({ length: 500 }, async (_, n) => (await pool.query('SELECT $1::int AS n, pg_sleep(0.001)', [n])).rows[0].n))
    await pool.end()
    return answers
  },
  'a pool whose sessions fail': async () => {
    const pool = new Pool({ max: 3 })
    const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => pool.query('SELECT 12 / $1::int AS n', [n % 4]).then(r => r.rows, fields)))
    await pool.end()
    return answers
  },
  'fifty connections after another': async () => {
    for (let n = 0; n < 50; n++) assert.deepEqual(await withClient(c => rows(c, 'SELECT $1::int AS n', [n]))(), [{ n }])
  },
}

for (const [type, sql] of Object.entries(types)) {
  const value = type === 'void' || type === 'record' ? sql : `${sql}::${type}`
  tests[`${type} in text`] = withClient(async c => shape(await c.query(`SELECT ${value} AS v`)))
  if (type === 'void' || type === 'record') continue
  tests[`${type} in binary, there and back`] = withClient(async c => shape(await c.query({ text: `SELECT $1::${type} AS v, pg_typeof($1::${type})::text AS t`, values: [(await rows(c, `SELECT (${value})::text AS v`))[0].v], binary: !type.includes('[') && !/money|reg|range|lsn|tsv/.test(type) })))
}

report(tests).then(() => process.exit())
