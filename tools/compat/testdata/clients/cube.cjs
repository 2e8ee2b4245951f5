// Cube's driver for PostgreSQL: the schema that it reads, and the queries of a cube.
const { PostgresDriver } = require('@cubejs-backend/postgres-driver')
const { names, show, types, version, groups, join, connection } = require('./show.cjs')

// Cube writes dates and times in the form of ISO 8601, with T and fractions.
const plain = rows => rows.map(row => Object.fromEntries(Object.entries(row).map(([name, value]) =>
  [name, typeof value === 'string' ? value.replace(name === 'admitted' ? '.000' : 'T00:00:00.000', '').replace(/^(\d{4}-\d\d-\d\d)T/, '$1 ') : value])))

const main = async () => {
  version('@cubejs-backend/postgres-driver')
  const driver = new PostgresDriver({ ...connection, max: 1 })
  await driver.testConnection()
  types((await driver.tablesSchema()).research.people.map(c => [c.name, c.type]))
  show('rows', plain(await driver.query(`SELECT ${names.join(', ')} FROM people`, [])), names)
  const { rows } = await driver.downloadQueryResults('SELECT age, zip FROM people WHERE age >= $1 AND sex = $2', [65, 'female'], {})
  show('filter', rows, ['age', 'zip'])
  // As Cube writes queries of measures and dimensions.
  show('groups', plain(await driver.query(`SELECT "people".sex "sex", count(*) "n", sum("people".age) "years", min("people".born) "first",
    max("people".cost) "most" FROM research.people AS "people" GROUP BY 1 ORDER BY 2 DESC LIMIT 10000`, [])), groups)
  show('join', await driver.query(`SELECT "postcodes".city "city", count(*) "n" FROM research.people AS "people"
    LEFT JOIN public.postcodes AS "postcodes" ON "people".zip = "postcodes".zip GROUP BY 1 ORDER BY 2 DESC LIMIT 10000`, []), join)
  await driver.release()
}
main().catch(error => { console.error(error); process.exit(1) })
