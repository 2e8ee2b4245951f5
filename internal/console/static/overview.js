// The first page: the tables and how they stand, and what was asked of them.
import { h, number, verdict, cell, table, to, toTable } from './dom.js';
import { verdictChart, lossChart } from './charts.js';
import { tableList, nothingProtected } from './tables.js';

const spans = [
  [1, 'hour'], [24, 'day'], [24 * 7, 'week'], [24 * 30, '30 days'], [24 * 365, 'year'],
];

// Without what tools ask of catalogs, unless the reader wants it.
function folded(found, totals, all) {
  const sum = Object.values(found.catalog).reduce((a, b) => a + b, 0);
  if (all || !sum) return { sum, totals, buckets: found.buckets };
  return {
    sum,
    buckets: found.buckets.map((b) => ({ ...b, passed: b.passed - b.catalog })),
    totals: totals
      .map((t) => (t.relation ? t
        : { ...t, passed: t.passed - (found.catalog[t.principal] || 0) }))
      .filter((t) => t.released || t.passed || t.refused || t.failed),
  };
}

export async function overview(get, parameters) {
  const hours = Number(parameters.get('hours') || 24);
  const all = parameters.get('catalog') === '1';
  const since = new Date(Date.now() - hours * 3600e3).toISOString();
  const [found, totals, tables] = await Promise.all([
    get('overview?hours=' + hours), get('totals?since=' + encodeURIComponent(since)),
    get('tables'),
  ]);
  if (!tables.length) return [h('h1', {}, 'Overview'), nothingProtected()];
  const shown = folded(found, totals || [], all);
  const sum = (key) => shown.buckets.reduce((n, b) => n + b[key], 0);
  const choose = (event) => {
    location.hash = '#overview?' + new URLSearchParams({
      hours: event.target.value, ...(all ? { catalog: '1' } : {}),
    });
  };
  const asked = ['released', 'passed', 'refused', 'failed'].some((v) => sum(v) > 0);
  return [h('h1', {}, 'Overview'),
    h('h2', {}, 'Protected tables'), tableList(tables),
    h('h2', {}, 'Statements'),
    h('form', {}, h('label', {}, 'Time',
      h('select', { name: 'hours', id: 'hours', onchange: choose },
        spans.map(([n, name]) => h('option', { value: n, selected: n === hours },
          'last ' + name))))),
    h('div', { class: 'cards' }, ['released', 'passed', 'refused', 'failed'].map((v) =>
      h('div', { class: 'card' }, h('b', { id: 'sum-' + v }, number(sum(v))),
        to('queries', { verdict: v, since, ...(all ? { catalog: 1 } : {}) }, verdict(v))))),
    shown.sum ? h('p', {}, h('a', {
      id: 'catalog', href: '#overview?' + new URLSearchParams({ hours, catalog: all ? 0 : 1 }),
    }, all ? 'hide catalog queries' : `show catalog queries (${number(shown.sum)})`)) : null,
    asked ? charts(shown) : quiet()];
}

const charts = ({ buckets, totals }) => [
  h('h3', {}, 'By verdict'), verdictChart(buckets),
  h('h3', {}, 'Loss and risk of what was released'), lossChart(buckets),
  table('By principal and table', [
    ['principal', (t) => to('queries', { principal: t.principal }, t.principal || '–')],
    ['table', (t) => (t.relation ? toTable(t.relation) : '–')],
    ...['released', 'refused', 'failed', 'passed', 'rows'].map((key) =>
      [key, (t) => cell.number(t[key]), 'number']),
    ['highest risk', (t) => cell.risk(t.max_risk || null), 'number'],
    ['mean loss', (t) => cell.percent(t.released ? t.mean_loss : null), 'number'],
    ['smallest class', (t) => cell.number(t.min_block || null), 'number'],
  ], totals)];

const quiet = () => h('div', { class: 'first' },
  h('p', {}, 'Nobody has asked anything in this time.'),
  h('p', {}, 'Readers connect to the proxy in place of PostgreSQL, and name the tables as they ' +
    'are called. A first statement, as a reader:'),
  h('pre', { tabindex: '0', role: 'region', 'aria-label': 'A first statement' },
    'psql -h PROXY -p 6432 -U READER DATABASE -c \'SELECT count(*) FROM TABLE\''));
