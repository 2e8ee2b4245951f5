// Prints what clients read: a line for each row, the probe's name first.
const { readFileSync } = require('node:fs')
const path = require('node:path')

const names = ['age', 'height', 'weight', 'born', 'member', 'sex', 'zip', 'visits', 'cost', 'score', 'admitted', 'consents', 'diagnosis']

const pad = n => String(n).padStart(2, '0')
const day = d => `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`
// field writes a value of JavaScript's own type as PostgreSQL does.
const field = (value, column) => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'boolean') return value ? 't' : 'f'
  if (value instanceof Date) return column === 'admitted' ? `${day(value)} ${pad(value.getHours())}:${pad(value.getMinutes())}:${pad(value.getSeconds())}` : day(value)
  return String(value)
}
// show takes rows as objects, with the columns to print.
const show = (probe, rows, columns) => {
  for (const row of rows) console.log([probe, ...columns.map(c => field(row[c], c))].join('\t'))
}
const type = name => ({ int4: 'integer', int2: 'smallint', int8: 'bigint', bool: 'boolean', float8: 'double precision' })[name] ||
  name.toLowerCase().replace(' without time zone', '').replace(/\(.*\)/, '')
const types = list => { for (const [name, of] of list) console.log(['types', name, type(of)].join('\t')) }
const version = (...packages) => console.log('version\t' + packages.map(p =>
  JSON.parse(readFileSync(path.join(process.env.NODE_PATH, p, 'package.json'))).version).join(', '))
const groups = ['sex', 'n', 'years', 'first', 'most']
const join = ['city', 'n']
const connection = {
  host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER, password: process.env.PGPASSWORD, database: process.env.PGDATABASE,
}
module.exports = { names, show, types, version, groups, join, connection }
