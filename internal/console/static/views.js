// The sections of the page. A view takes what it needs from the server and
// gives the elements to show.
import { h, s, percent, number, moment, cell, table, to, toTable } from './dom.js';
import { treeOf } from './tree.js';

export { overview } from './overview.js';
export { tables, table } from './tables.js';
export { queries, query } from './statements.js';
export { draft } from './draft.js';

export async function chains(get) {
  const list = await get('chains');
  const room = (c) =>
    (c.subjects && c.k ? Math.max(0, 1 - (c.blocks * c.k) / c.subjects) : null);
  if (!list.length) {
    return [h('h1', {}, 'Chains'), h('p', { class: 'first' }, 'There are none yet: a proxy makes ' +
      'those of a table when its policy is put in force, or the first query does.')];
  }
  return [h('h1', {}, 'Chains'),
    h('p', { class: 'quiet' }, 'How fine the root is that each audience is shown. At most ' +
      'subjects / k classes can be told apart; what is left could not be cut without more loss.'),
    table('Chains', [
      ['table', (c) => toTable(c.relation)], ['audience', (c) => c.audience],
      ['epoch', (c) => cell.number(c.epoch), 'number'],
      ['generation', (c) => cell.number(c.generation), 'number'],
      ['classes', (c) => cell.number(c.blocks), 'number'],
      ['smallest class', (c) => cell.number(c.blocks ? c.min_block : null), 'number'],
      ['k', (c) => cell.number(c.k), 'number'],
      ['room left', (c) => [h('meter', {
        min: 0, max: 1, value: room(c) ?? 0, 'aria-label': 'room left',
      }), ' ', cell.percent(room(c))], 'room'],
      ['mean loss', (c) => cell.percent(c.together), 'number'],
      ['last asked along', (c) => (c.asked
        ? `${c.asked.join(', ')} (loss ${percent(c.loss)})` : '–')],
      ['changed', (c) => moment(c.changed)],
    ], list),
    h('h2', {}, 'Loss by column'),
    h('p', { class: 'quiet' }, 'What each quasi-identifier loses in the partition as it is: 0 % ' +
      'shows every value, 100 % shows none. A chain that waits for a newer epoch has no figures ' +
      'until a proxy has carried it over.'),
    list.filter((c) => c.losses).map((c) => h('section', { class: 'columns' },
      h('h3', {}, `${c.relation}, ${c.audience}`),
      h('dl', { class: 'bars' }, Object.entries(c.losses).map(([name, loss]) =>
        [h('dt', {}, name), h('dd', {}, lossBar(loss), ' ' + percent(loss))]))))];
}

const lossBar = (loss) => s('svg', {
  class: 'loss', viewBox: '0 0 100 8', width: 160, height: 12, preserveAspectRatio: 'none',
  'aria-hidden': 'true',
}, s('rect', { class: 'all', width: 100, height: 8 }),
s('rect', { class: 'lost', width: 100 * loss, height: 8 }));

const classOf = (c) => (c.class || 'none: hidden').replaceAll('_', ' ')
  + (c.shared_fact === 'accepted' ? ', shared fact accepted' : '');

const required = (r) => `, ${r.model} of ${r.parameter}${r.c ? ` with c = ${r.c}` : ''}`
  + `${r.distance ? ` by ${r.distance} distance` : ''} on ${r.column}`;

const changed = (p) => p.differences && [
  h('h2', {}, 'Changed from the version before'),
  p.differences.length ? h('ul', {}, p.differences.map((d) => h('li', {}, d)))
    : h('p', {}, 'Nothing.')];

export async function policies(get) {
  const list = await get('policies');
  return [h('h1', {}, 'Policies'), h('p', {}, to('draft', {}, 'Draft a policy'),
    ' for tables that are not protected yet.'),
  list.length ? list.map((p) => h('details', { open: p.active },
    h('summary', {}, h('strong', {}, p.relation),
      ` version ${p.version}${p.active ? ', in force' : ''}, by ${p.author}, `,
      moment(p.created)),
    h('p', {}, `Subject ${p.subject}, k = ${p.k}, recoding ${p.recoding}, root by ${p.scope}`,
      (p.require || []).map(required), '. ', toTable(p.relation)),
    changed(p),
    table(`Columns of ${p.relation}, version ${p.version}`, [
      ['column', (c) => c.name], ['type', (c) => c.type], ['class', classOf],
      ['action', (c) => (c.class === 'direct_identifier' ? c.action : '')],
      ['hierarchy', treeOf, 'hierarchy'],
    ], p.columns || []))) : h('p', { class: 'first' }, 'No policy is in force yet.')];
}

const bytes = (n) => {
  const unit = Math.min(4, Math.floor(Math.log2(n || 1) / 10));
  const named = (n / 1024 ** unit).toFixed(unit ? 1 : 0);
  return h('data', { value: n }, n ? named + ' ' + ['B', 'KB', 'MB', 'GB', 'TB'][unit] : '–');
};

export async function epochs(get) {
  const [list, waiting] = await Promise.all([get('epochs'), get('waiting')]);
  const since = (n, when) => [cell.number(n), n && when ? [' since ', moment(when)] : ''];
  const days = (e) => Math.floor((Date.now() - new Date(e.created)) / 864e5);
  const current = list.filter((e) => e.current);
  return [h('h1', {}, 'Epochs'),
    h('p', { class: 'quiet' }, 'Stored copies that releases are made from. A proxy carries what ' +
      'readers are shown to the current one; a copy that no chain is on is given up.'),
    table('Epochs', [
      ['epoch', (e) => cell.number(e.epoch), 'number'], ['table', (e) => toTable(e.relation)],
      ['policy version', (e) => cell.number(e.version), 'number'],
      ['created', (e) => moment(e.created)],
      ['age', (e) => h('data', { value: days(e) }, `${number(days(e))} d`), 'number'],
      ['rows', (e) => cell.number(e.rows), 'number'],
      ['distinct tuples', (e) => cell.number(e.tuples), 'number'],
      ['subjects', (e) => cell.number(e.subjects), 'number'],
      ['chains on it', (e) => cell.number(e.chains), 'number'],
      ['on the disk', (e) => bytes(e.bytes), 'number'],
      ['current', (e) => (e.current ? 'yes' : 'no')],
    ], list),
    table('Who waits', [
      ['table', (w) => toTable(w.relation)], ['audience', (w) => w.audience],
      ['copied', (w) => moment(w.copied)],
      ['subjects shown', (w) => cell.number(w.subjects), 'number'],
      ['to be shown', (w) => since(w.arrivals, w.arrivals_since)],
      ['to go', (w) => since(w.departures, w.departures_since)],
      ['to be shown as they are now', (w) => since(w.changes, w.changes_since)],
      ['have left', (w) => cell.percent(w.stale), 'number'], ['next', (w) => w.next],
    ], waiting),
    current.length ? [h('h2', {}, 'Refresh'),
      h('p', { class: 'quiet' }, 'A new epoch reads the table anew. Run as a database ' +
        'administrator, or on a schedule of your own:'),
      current.map((e) => h('pre', {
        tabindex: '0', role: 'region', 'aria-label': 'Statement that refreshes ' + e.relation,
      }, e.refresh))] : null];
}

export async function doctor(get) {
  const { checks, findings } = await get('findings');
  const count = (severity) => findings.filter((f) => f.severity === severity).length;
  return [h('h1', {}, 'Doctor'),
    h('p', { class: 'quiet' }, 'Ways round the proxy, and what else is wrong with the ' +
      `installation: the ${checks} checks of tailor doctor, made now, as far as the proxy's ` +
      'own role may look.'),
    h('div', { class: 'cards' }, [
      ['serious', 'failed', 'serious findings'], ['warning', 'refused', 'warnings'],
      ['unknown', 'passed', 'checks not made'],
    ].map(([severity, kind, name]) => h('div', { class: 'card' },
      h('b', { id: 'count-' + severity }, number(count(severity))),
      h('span', { class: 'verdict ' + kind }, name)))),
    findings.length ? findings.map((f, i) => h('section', { class: 'finding ' + f.severity },
      h('h2', {}, `${f.object === '-' ? f.check : f.object}`),
      h('p', {}, h('strong', {}, f.severity), `: ${f.message} `,
        h('span', { class: 'quiet' }, `(${f.check})`)),
      h('pre', {
        tabindex: '0', role: 'region', 'aria-label': `What mends finding ${i + 1}`,
      }, f.mend))) : h('p', {}, 'Nothing was found.')];
}
