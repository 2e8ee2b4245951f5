// The list of statements with its search, and the page of one.
import { h, risk, percent, moment, verdict, cell, table, to, toTable } from './dom.js';
import { graph } from './graph.js';

const verdicts = ['released', 'passed', 'refused', 'failed'];

const columns = [
  ['time', (e) => to('query', { id: e.id }, moment(e.time))],
  ['verdict', (e) => verdict(e.verdict)],
  ['SQLSTATE', (e) => e.sqlstate],
  ['principal', (e) => e.principal, 'name'],
  ['statement', (e) => (e.event === 'login' ? 'login' : e.sql), 'sql'],
  ['relations', (e) => (e.relations || []).map((name, i) => [i ? ', ' : '', toTable(name)])],
  ['risk', (e) => cell.risk(e.aggregate_risk || null), 'number'],
  ['loss', (e) => cell.percent(e.min_block ? e.aggregate_loss : null), 'number'],
  ['rows', (e) => cell.number(e.rows), 'number'],
];

export const statementTable = (caption, entries) => table(caption, columns, entries);

// fold says how many statements of tools are left out, and shows them.
function fold(found, parameters) {
  const shown = parameters.get('catalog') === '1';
  if (!found.folded && !shown) return null;
  const other = new URLSearchParams(parameters);
  if (shown) other.delete('catalog'); else other.set('catalog', '1');
  return h('p', {}, h('a', { id: 'catalog', href: '#queries?' + other },
    shown ? 'hide catalog queries' : `show catalog queries (${found.folded})`));
}

// more goes on where the list ends.
function more(found, parameters) {
  if (!found.next) return null;
  const older = new URLSearchParams(parameters);
  older.set('before', found.next);
  const full = found.entries.length >= 50;
  return h('p', {}, full ? '' : `The last ${found.looked.toLocaleString()} were looked at. `,
    h('a', { href: '#queries?' + older }, full ? 'Older' : 'Look further back'));
}

function nobody(parameters) {
  const asked = [...parameters.keys()].some((name) => name !== 'catalog');
  if (asked) {
    return h('p', {}, 'No statement is so. ', to('queries', {}, 'Show all statements'), '.');
  }
  return h('div', { class: 'first' }, h('p', {}, 'Nobody has asked anything yet.'),
    h('p', {}, 'Statements come here as soon as somebody sends one through the proxy.'));
}

export async function queries(get, parameters) {
  const found = await get('queries?' + parameters);
  const field = (name, label, attributes) => h('label', {}, label,
    h('input', { name, id: name, value: parameters.get(name) || '', ...attributes }));
  const search = (event) => {
    event.preventDefault();
    const chosen = new URLSearchParams([...new FormData(event.target)].filter(([, v]) => v));
    for (const name of ['since', 'until']) {
      if (chosen.has(name)) chosen.set(name, new Date(chosen.get(name)).toISOString());
    }
    if (parameters.get('catalog') === '1') chosen.set('catalog', '1');
    location.hash = '#queries?' + chosen;
  };
  const local = (name) => {
    if (!parameters.get(name)) return '';
    const t = new Date(parameters.get(name));
    return new Date(t - t.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
  };
  const chosen = parameters.get('verdict') || '';
  const narrow = ['since', 'until', 'principal', 'relation', 'risk', 'loss']
    .some((name) => parameters.get(name));
  return [h('h1', {}, 'Statements'),
    h('form', { id: 'filter', onsubmit: search, role: 'search' },
      field('q', 'principal, table, text or verdict has', { type: 'search', class: 'wide' }),
      h('label', {}, 'verdict', h('select', { name: 'verdict', id: 'verdict' },
        ['', ...verdicts].map((v) => h('option', { value: v, selected: v === chosen },
          v || 'any')))),
      h('button', { class: 'main', type: 'submit' }, 'Search'), to('queries', {}, 'Clear'),
      h('details', { class: 'more', open: narrow }, h('summary', {}, 'More'),
        h('div', { class: 'fields' },
          field('since', 'from', { type: 'datetime-local', value: local('since') }),
          field('until', 'before', { type: 'datetime-local', value: local('until') }),
          field('principal', 'principal is'), field('relation', 'table is'),
          field('risk', 'risk above', { type: 'number', min: 0, max: 1, step: 'any' }),
          field('loss', 'loss above', { type: 'number', min: 0, max: 1, step: 'any' })))),
    fold(found, parameters),
    found.entries.length ? statementTable('Statements, the last first', found.entries)
      : !found.folded && !found.next && nobody(parameters),
    !found.entries.length && found.folded ? h('p', {}, 'All of them read catalogs only.') : null,
    more(found, parameters)];
}

export async function query(get, parameters) {
  const e = await get('queries/' + encodeURIComponent(parameters.get('id')));
  const ms = (n) => (n ? n.toFixed(1) + ' ms' : '');
  const facts = [
    ['time', moment(e.time)], ['verdict', verdict(e.verdict)], ['SQLSTATE', e.sqlstate],
    ['principal', to('queries', { principal: e.principal }, e.principal)], ['client', e.client],
    ['session', e.session], ['database', e.database],
    ['relations', (e.relations || []).length
      ? e.relations.map((name, i) => [i ? ', ' : '', toTable(name)]) : ''],
    ['policy version', e.policy_version || ''], ['epoch', e.epoch || ''],
    ['chain', e.chain || ''], ['rows', cell.number(e.rows)],
    ['risk', e.min_block ? risk(e.aggregate_risk) : ''],
    ['loss', e.min_block ? percent(e.aggregate_loss) : ''],
    ['duration', ms(e.duration_ms)], ['planning', ms(e.plan_ms)],
    ['fingerprint', e.fingerprint], ['record', e.id], ['hash', e.hash],
  ];
  const none = e.verdict === 'released'
    ? 'The statement needed no quasi-identifier: there are no stages.'
    : 'Nothing was released: there are no stages.';
  const text = e.sql
    || (e.event === 'login' ? 'A login that was refused.' : 'The text is not kept.');
  return [h('h1', {}, 'Statement'),
    h('pre', { tabindex: '0', role: 'region', 'aria-label': 'Text without literals' }, text),
    h('dl', {}, facts.filter(([, v]) => v !== '' && v !== undefined && v !== null)
      .map(([name, v]) => [h('dt', {}, name), h('dd', {}, v)])),
    h('h2', {}, 'Execution chain graph'),
    e.stages && e.stages.length ? graph(e) : h('p', {}, none)];
}
