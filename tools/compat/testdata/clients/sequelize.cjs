// Sequelize: describeTable, a model, finders, aggregates and an association.
const { Sequelize, DataTypes, Op } = require('sequelize')
const { names, show, types, version, groups, join, connection } = require('./show.cjs')

const main = async () => {
  version('sequelize')
  const db = new Sequelize({ ...connection, username: connection.user, dialect: 'postgres', logging: false })
  const described = await db.getQueryInterface().describeTable('people', { schema: 'research' })
  types(Object.entries(described).map(([name, c]) => [name, c.type]))
  // A release has no key: one column must stand for it, and no query depends on which.
  const of = { age: DataTypes.INTEGER, height: DataTypes.SMALLINT, weight: DataTypes.DECIMAL(5, 1), born: DataTypes.DATEONLY,
    member: DataTypes.BOOLEAN, sex: DataTypes.TEXT, zip: DataTypes.TEXT, visits: DataTypes.BIGINT, cost: DataTypes.DECIMAL(10, 2),
    score: DataTypes.DOUBLE, admitted: { type: DataTypes.DATE, primaryKey: true }, consents: DataTypes.BOOLEAN, diagnosis: DataTypes.TEXT }
  const model = { timestamps: false, freezeTableName: true }
  const Person = db.define('people', of, model)
  const Postcode = db.define('postcodes', { zip: { type: DataTypes.TEXT, primaryKey: true }, city: DataTypes.TEXT }, model)
  Person.belongsTo(Postcode, { foreignKey: 'zip', targetKey: 'zip', as: 'place' })
  show('rows', await Person.findAll({ raw: true }), names)
  show('filter', await Person.findAll({ where: { age: { [Op.gte]: 65 }, sex: 'female' } }), ['age', 'zip'])
  const fn = (name, column) => db.fn(name, db.col(column))
  show('groups', await Person.findAll({ raw: true, group: 'sex',
    attributes: ['sex', [fn('count', '*'), 'n'], [fn('sum', 'age'), 'years'], [fn('min', 'born'), 'first'], [fn('max', 'cost'), 'most']] }), groups)
  show('join', await Person.findAll({ raw: true, group: 'place.city', include: { model: Postcode, as: 'place', attributes: [] },
    attributes: [[db.col('place.city'), 'city'], [fn('count', '*'), 'n']] }), join)
  await db.close()
}
main().catch(error => { console.error(error); process.exit(1) })
