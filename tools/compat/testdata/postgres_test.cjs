// What programs do with postgres.js, which pipelines and prepares by itself.
const assert = require('node:assert')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const postgres = require('postgres')
const report = require('./report.cjs')
const { fields, loginFields, types } = report

const options = { max: 1, onnotice: () => {}, ssl: false }

// withClient gives a test a pool of its own, of one session unless it says otherwise.
const withClient = (test, more) => async () => {
  const sql = postgres({ ...options, ...more })
  try {
    return await test(sql)
  } finally {
    await sql.end({ timeout: 5 })
  }
}

const refused = async promise => fields(await promise.then(() => assert.fail('no error'), error => error))
const shape = result => ({ rows: [...result], command: result.command, count: result.count, columns: result.columns?.map(c => [c.name, c.type, c.table > 0, c.number]) })

const tests = {
  'a query': withClient(async sql => shape(await sql`SELECT 1 AS one, NULL::text AS nothing`)),
  'parameters': withClient(async sql => shape(await sql`SELECT ${41}::int + 1 AS a, ${'ä\'\\'}::text AS b, ${sql.json({ x: [1] })}::jsonb AS c, ${[1, 2, 3]}::int[] AS d, ${null}::text AS e`)),
  'several simple statements': withClient(async sql => (await sql`SELECT 1 AS a; SELECT 2 AS b; CREATE TEMP TABLE s (n int)`.simple()).map(shape)),
  'an unprepared query': withClient(async sql => shape(await sql.unsafe('SELECT $1::int AS n', [5], { prepare: false }))),
  'a repeated query': withClient(async sql => {
    const all = []
    for (let n = 0; n < 30; n++) all.push((await sql`SELECT ${n}::int * 2 AS n`)[0].n)
    return all
  }),
  'queries at once': withClient(async sql => Promise.all(Array.from({ length: 500 }, async (_, n) => (await sql`SELECT ${n}::int AS n`)[0].n))),
  'queries at once over ten sessions': withClient(async sql => Promise.all(Array.from({ length: 500 }, async (_, n) => (await sql`SELECT ${n}::int AS n, pg_sleep(0.001)`)[0].n)), { max: 10 }),
  'queries at once with errors between': withClient(async sql => Promise.all(Array.from({ length: 60 }, (_, n) => sql`SELECT 100 / ${n % 3}::int AS n`.then(r => [...r], fields)))),
  'without transformed types': withClient(async sql => shape(await sql`SELECT ${'7'}::int AS n`), { fetch_types: false }),
  'rows raw and as values': withClient(async sql => [await sql`SELECT 1 AS a, 'x' AS b`.raw(), await sql`SELECT 1 AS a, 'x' AS a`.values()]),
  'describing a statement': withClient(async sql => {
    const { string, types, columns } = await sql`SELECT ${1}::int AS a, ${'x'}::text AS b`.describe()
    return [string, types, columns.map(c => [c.name, c.type])]
  }),
  'describing one that is wrong': withClient(async sql => [await refused(sql`SELECT nothing`.describe()), (await sql`SELECT 1 AS n`)[0]]),
  'identifiers and inserts of many': withClient(async sql => {
    await sql`CREATE TEMP TABLE "many rows" (n int, t text)`
    const inserted = await sql`INSERT INTO ${sql('many rows')} ${sql([{ n: 1, t: 'a' }, { n: 2, t: null }, { n: 3, t: 'ä' }])} RETURNING *`
    const updated = await sql`UPDATE ${sql('many rows')} SET ${sql({ t: 'z' })} WHERE n IN ${sql([1, 3])}`
    return [shape(inserted), shape(updated)]
  }),
  'errors in full': withClient(async sql => {
    await sql`CREATE TEMP TABLE e (n int PRIMARY KEY CHECK (n > 0))`
    await sql`INSERT INTO e VALUES (1)`
    const all = []
    for (const text of ['INSERT INTO e VALUES (1)', 'INSERT INTO e VALUES (-1)', 'SELEC', "SELECT 'x'::int", 'SELECT * FROM nowhere']) all.push(await refused(sql.unsafe(text)), await refused(sql.unsafe(text, [], { prepare: true })))
    return all
  }),
  'notices': async () => {
    const heard = []
    await withClient(sql => sql.unsafe("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two' USING HINT = 'h'; END $$"), { onnotice: n => heard.push(fields(n)) })()
    return heard
  },
  'parameters of the session': async () => {
    const heard = {}
    await withClient(async sql => { await sql`SET application_name TO 'other'`; await sql`SET TIME ZONE 'UTC'` }, { onparameter: (key, value) => { heard[key] = value } })()
    return heard
  },
  'settings at the start': withClient(async sql => [...await sql`SELECT current_setting('application_name') AS a, current_setting('search_path') AS s, current_setting('work_mem') AS w`], { connection: { application_name: 'a program', search_path: 'pg_temp', work_mem: '7MB' } }),
  'a transaction': withClient(async sql => {
    await sql`CREATE TEMP TABLE t (n int)`
    await sql.begin(async t => { await t`INSERT INTO t VALUES (1)`; await t`INSERT INTO t VALUES (2)` })
    const failed = await refused(sql.begin(async t => { await t`INSERT INTO t VALUES (3)`; await t`SELECT 1/0` }))
    return [failed, [...await sql`SELECT n FROM t ORDER BY n`]]
  }),
  'savepoints': withClient(async sql => {
    await sql`CREATE TEMP TABLE t (n int)`
    await sql.begin(async t => {
      await t`INSERT INTO t VALUES (1)`
      await t.savepoint(async p => { await p`INSERT INTO t VALUES (2)`; await p`SELECT 1/0` }).catch(() => {})
      await t.savepoint('named', async p => p`INSERT INTO t VALUES (3)`)
    })
    return [...await sql`SELECT n FROM t ORDER BY n`]
  }),
  'a pipelined transaction': withClient(async sql => (await sql.begin(t => [t`SELECT 1 AS n`, t`SELECT 2 AS n`, t`SELECT 3 AS n`])).map(shape)),
  'a prepared transaction': withClient(async sql => {
    await sql`CREATE TABLE IF NOT EXISTS two_phase (n int)`
    await sql.begin(async t => { await t`INSERT INTO two_phase VALUES (1)`; await t.prepare('later') })
    await sql`COMMIT PREPARED 'later'`
    const found = [...await sql`SELECT count(*)::int FROM two_phase`]
    await sql`DROP TABLE two_phase`
    return found
  }),
  'a cursor': withClient(async sql => {
    const parts = []
    for await (const part of sql`SELECT generate_series(1, 25) AS n`.cursor(7)) parts.push(part.map(r => r.n))
    return [parts, [...await sql`SELECT 1 AS n`]]
  }),
  'a cursor by callback, left early': withClient(async sql => {
    const seen = []
    await sql`SELECT generate_series(1, 1000) AS n`.cursor(10, part => { seen.push(part.length); return seen.length === 3 ? sql.CLOSE : undefined })
    return [seen, [...await sql`SELECT 1 AS n`]]
  }),
  'a cursor broken off': withClient(async sql => {
    for await (const [row] of sql`SELECT generate_series(1, 1000) AS n`.cursor()) if (row.n === 3) break
    return [...await sql`SELECT 1 AS n`]
  }),
  'a cursor that fails': withClient(async sql => [await refused(sql`SELECT 10 / (5 - n) AS n FROM generate_series(1, 9) n`.cursor(2, () => {})), [...await sql`SELECT 1 AS n`]]),
  'row by row': withClient(async sql => {
    let sum = 0
    await sql`SELECT generate_series(1, 50000) AS n`.forEach(row => { sum += row.n })
    return sum
  }),
  'LISTEN and NOTIFY': withClient(async sql => {
    const heard = []
    let enough
    const all = new Promise(resolve => { enough = resolve })
    const { unlisten } = await sql.listen('js news', payload => { heard.push(payload); if (heard.length === 4) enough() })
    for (let n = 0; n < 4; n++) await sql.notify('js news', `n${n} ä`)
    await all
    await unlisten()
    return heard
  }),
  'COPY in': withClient(async sql => {
    await sql`CREATE TEMP TABLE i (n int, t text)`
    await pipeline(Readable.from(Array.from({ length: 5000 }, (_, n) => `${n}\trow ${n}\n`)), await sql`COPY i FROM STDIN`.writable())
    return [...await sql`SELECT count(*)::int, sum(n)::int, max(t) FROM i`]
  }),
  'COPY out': withClient(async sql => {
    const parts = []
    const stream = await sql`COPY (SELECT n, repeat('x', 50) FROM generate_series(1, 20000) n) TO STDOUT`.readable()
    await pipeline(stream, new Writable({ write: (part, _, done) => { parts.push(part); done() } }))
    return [Buffer.concat(parts).toString(), [...await sql`SELECT 1 AS n`]]
  }),
  'large objects': withClient(async sql => {
    const lo = await sql.largeObject()
    await lo.write(Buffer.alloc(100000, 'ab'))
    await lo.seek(99990)
    const [{ data }] = await lo.read(20)
    const size = [...await lo.size()]
    await lo.close()
    return [data, size]
  }),
  'a cancelled query': withClient(async sql => {
    const [{ pid }] = await sql`SELECT pg_backend_pid() AS pid`
    const query = sql`SELECT pg_sleep(60)`
    const failed = refused(query)
    await withClient(async other => {
      while ((await other`SELECT 1 FROM pg_stat_activity WHERE pid = ${pid} AND state = 'active' AND wait_event = 'PgSleep'`).length === 0);
    })()
    query.cancel()
    return [await failed, [...await sql`SELECT 1 AS n`]]
  }),
  'a statement timeout': withClient(async sql => [await refused(sql`SELECT pg_sleep(10)`), [...await sql`SELECT 1 AS n`]], { connection: { statement_timeout: 100 } }),
  'a reserved session': withClient(async sql => {
    const own = await sql.reserve()
    await own`SET application_name TO 'reserved'`
    const name = [...await own`SELECT current_setting('application_name') AS a`]
    own.release()
    return name
  }, { max: 3 }),
  'sessions of a limited life': withClient(async sql => {
    const all = []
    for (let n = 0; n < 20; n++) {
      all.push((await sql`SELECT ${n}::int AS n`)[0].n)
      await new Promise(resolve => setTimeout(resolve, 60))
    }
    return all
  }, { max_lifetime: 0.2, idle_timeout: 0.05 }),
  'a wrong password': withClient(sql => sql`SELECT 1`.then(() => assert.fail('no error'), loginFields), { password: 'wrong' }),
  'an unknown database': withClient(sql => sql`SELECT 1`.then(() => assert.fail('no error'), loginFields), { database: 'nowhere' }),
  'a value of ten megabytes': withClient(async sql => (await sql`SELECT length(${'x'.repeat(10000000)}) AS n, repeat('y', 10000000) AS t`).map(r => [r.n, r.t.length])),
  'a changed table': withClient(async sql => {
    await sql`CREATE TEMP TABLE changing AS SELECT 1 AS a`
    const before = [...await sql`SELECT * FROM changing`]
    await sql`ALTER TABLE changing ADD b int`
    return [before, await sql`SELECT * FROM changing`.then(r => [...r], fields), await sql`SELECT * FROM changing`.then(r => [...r], fields)]
  }),
}

for (const [type, text] of Object.entries(types)) {
  const value = type === 'void' || type === 'record' ? text : `${text}::${type}`
  tests[`${type}, prepared and not`] = withClient(async sql => [shape(await sql.unsafe(`SELECT ${value} AS v`)), shape(await sql.unsafe(`SELECT ${value} AS v`, [], { prepare: true }))])
}

report(tests).then(() => process.exit())
