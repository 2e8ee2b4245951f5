// drizzle: a schema of its own, and its query builder.
const { Pool } = require('pg')
const { drizzle } = require('drizzle-orm/node-postgres')
const { pgTable, integer, smallint, numeric, date, boolean, text, bigint, doublePrecision, timestamp } = require('drizzle-orm/pg-core')
const { and, gte, eq, count, sum, min, max } = require('drizzle-orm')
const { names, show, version, groups, join, connection } = require('./show.cjs')

const people = pgTable('people', {
  age: integer(), height: smallint(), weight: numeric(), born: date(), member: boolean(), sex: text(), zip: text(),
  visits: bigint({ mode: 'number' }), cost: numeric(), score: doublePrecision(), admitted: timestamp(), consents: boolean(), diagnosis: text(),
})
const postcodes = pgTable('postcodes', { zip: text().primaryKey(), city: text() })

const main = async () => {
  version('drizzle-orm')
  const pool = new Pool(connection)
  const db = drizzle(pool)
  show('rows', await db.select().from(people), names)
  show('filter', await db.select({ age: people.age, zip: people.zip }).from(people).where(and(gte(people.age, 65), eq(people.sex, 'female'))), ['age', 'zip'])
  show('groups', await db.select({ sex: people.sex, n: count(), years: sum(people.age), first: min(people.born), most: max(people.cost) }).from(people).groupBy(people.sex), groups)
  show('join', await db.select({ city: postcodes.city, n: count() }).from(people).leftJoin(postcodes, eq(people.zip, postcodes.zip)).groupBy(postcodes.city), join)
  await pool.end()
}
main().catch(error => { console.error(error); process.exit(1) })
