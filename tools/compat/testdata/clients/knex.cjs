// knex: columnInfo and its query builder.
const { names, show, types, version, groups, join, connection } = require('./show.cjs')

const main = async () => {
  version('knex')
  const db = require('knex')({ client: 'pg', connection, searchPath: undefined })
  types(Object.entries(await db('people').withSchema('research').columnInfo()).map(([name, c]) => [name, c.type]))
  show('rows', await db('people').select(names), names)
  show('filter', await db('people').where('age', '>=', 65).andWhere({ sex: 'female' }).select('age', 'zip'), ['age', 'zip'])
  show('groups', await db('people').groupBy('sex').select('sex').count('* as n').sum('age as years').min('born as first').max('cost as most'), groups)
  show('join', await db('people').leftJoin('postcodes', 'people.zip', 'postcodes.zip').groupBy('city').select('city').count('* as n'), join)
  await db.destroy()
}
main().catch(error => { console.error(error); process.exit(1) })
