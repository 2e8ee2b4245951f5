// Runs named tests one after another and prints a line for each: 'pass' or
// 'fail', and its name with a digest of what it returned, so that two runs
// differ where anything does that a program can see.
const { createHash } = require('node:crypto')

const plain = (_, value) => {
  if (typeof value === 'bigint') return `${value}n`
  if (Buffer.isBuffer(value) || value?.type === 'Buffer') return Buffer.from(value).toString('hex')
  return value
}

const patience = 60000

module.exports = async function report(tests) {
  for (const [name, test] of Object.entries(tests)) {
    let timer
    try {
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('no end')), patience)
      })
      const seen = await Promise.race([test(), late])
      const digest = createHash('sha256').update((JSON.stringify(seen, plain) ?? '').replace(/pg_temp_\d+/g, 'pg_temp')).digest('hex').slice(0, 12)
      console.log(`pass ${name} ${digest}`)
    } catch (error) {
      console.log(`fail ${name}`)
      console.error(name, error)
    } finally {
      clearTimeout(timer)
    }
  }
}

// fields are what every driver tells of an error of the server.
module.exports.fields = ({ code, severity, message, detail, hint, position, where, schema_name, table_name, column_name, constraint_name, routine }) =>
  ({ code, severity, message, detail, hint, position, where, schema_name, table_name, column_name, constraint_name, routine })

// loginFields are what is the same for a login that the server itself refuses:
// where in its source it did so is not.
module.exports.loginFields = error => ({ ...module.exports.fields(error), routine: undefined })

// types are a value of each common type, as SQL.
module.exports.types = {
  bool: 'true', int2: '-7', int4: '2147483647', int8: '9007199254740993', float4: '1.5', float8: "'-Infinity'", numeric: '12345678901234567890.123456789',
  text: "E'a\\tb ä 漢 😀'", varchar: "'v'", bpchar: "'c'", bytea: "'\\x00ff5c27'", date: "'2024-02-29'", time: "'23:59:59.999999'", timetz: "'04:05:06+02'",
  timestamp: "'2000-01-01 00:00:00.000001'", timestamptz: "'infinity'", interval: "'1 year 2 mons 3 days 04:05:06.7'", uuid: "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
  json: `'{"a": [1, null, "x"]}'`, jsonb: `'{"b": {"c": 1.50}}'`, xml: "'<a>b</a>'", inet: "'::1/64'", cidr: "'10.0.0.0/8'", macaddr: "'08:00:2b:01:02:03'",
  point: "'(1,2)'", box: "'(1,1),(0,0)'", circle: "'<(0,0),3>'", bit: "B'1'", varbit: "B'10101'", tsvector: "'fat cat'", int4range: "'[1,5)'", int8multirange: "'{[1,3),[5,7)}'",
  money: "'12.34'", oid: '4294967295', name: "'n'", regclass: "'pg_class'", pg_lsn: "'16/B374D848'", 'int4[]': "'{{1,2},{3,NULL}}'", 'text[]': `'{"a,b","\\"",NULL,""}'`,
  'timestamptz[]': "'{2020-01-01T00:00:00Z}'", 'bytea[]': `'{"\\\\x01"}'`, record: "ROW(1,'a',NULL)", void: "pg_notify('none','')",
}
