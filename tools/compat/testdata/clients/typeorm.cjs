// TypeORM: entities of views, repositories and query builders.
require('reflect-metadata')
const { DataSource, EntitySchema, MoreThanOrEqual } = require('typeorm')
const { names, show, types, version, groups, join, connection } = require('./show.cjs')

const column = (type, more) => ({ type, nullable: true, ...more })
const Person = new EntitySchema({
  name: 'people',
  columns: {
    age: column('integer'), height: column('smallint'), weight: column('numeric'), born: column('date'), member: column('boolean'),
    sex: column('text'), zip: column('text'), visits: column('bigint'), cost: column('numeric'), score: column('double precision'),
    // A release has no key: this column tells all rows apart.
    admitted: { type: 'timestamp', primary: true }, consents: column('boolean'), diagnosis: column('text'),
  },
})
const Postcode = new EntitySchema({ name: 'postcodes', columns: { zip: { type: 'text', primary: true }, city: { type: 'text' } } })

const main = async () => {
  version('typeorm')
  const db = await new DataSource({ ...connection, username: connection.user, type: 'postgres', entities: [Person, Postcode] }).initialize()
  const runner = db.createQueryRunner()
  const table = await runner.getTable('research.people')
  types(((table && table.columns) || []).map(c => [c.name, c.type]))
  await runner.release()
  const people = db.getRepository('people')
  show('rows', await people.find(), names)
  show('filter', await people.findBy({ age: MoreThanOrEqual(65), sex: 'female' }), ['age', 'zip'])
  show('groups', await people.createQueryBuilder('p').select('p.sex', 'sex').addSelect('count(*)', 'n').addSelect('sum(p.age)', 'years')
    .addSelect('min(p.born)', 'first').addSelect('max(p.cost)', 'most').groupBy('p.sex').getRawMany(), groups)
  show('join', await people.createQueryBuilder('p').leftJoin('postcodes', 'q', 'q.zip = p.zip').select('q.city', 'city').addSelect('count(*)', 'n')
    .groupBy('q.city').getRawMany(), join)
  await db.destroy()
}
main().catch(error => { console.error(error); process.exit(1) })
