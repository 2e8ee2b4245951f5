// The protected tables: their list, and a page for each.
import {
  h, s, percent, risk, number, moment, ago, cell, table, to, toTable,
} from './dom.js';
import { verdictChart, lossChart } from './charts.js';
import { statementTable } from './statements.js';
import { treeOf } from './tree.js';

// what is one figure over all audiences of a table.
const over = (t, pick, join) => (t.releases.length ? join(...t.releases.map(pick)) : null);

const waiting = (r) => r.arrivals + r.departures + r.changes;

// loss is the mean over the quasi-identifiers of a release, null if it has none.
function loss(release) {
  const found = release.columns.filter((c) => c.class === 'quasi_identifier');
  return found.length ? found.reduce((sum, c) => sum + c.loss, 0) / found.length : null;
}

const highest = (t) => {
  const found = t.releases.map(loss).filter((l) => l !== null);
  return found.length ? Math.max(...found) : null;
};

const kind = (t) => (t.data_set ? ['data set of ', toTable(t.parent)]
  : t.m ? 'sets of codes' : t.parent ? ['table, child of ', toTable(t.parent)] : 'table');

function state(t) {
  if (t.version === null) return h('span', { class: 'warn' }, 'draft: readers see nothing');
  if (t.schedule && t.schedule.failed) return h('span', { class: 'fault' }, 'refresh fails');
  if (!t.releases.length) return 'not shown yet';
  if (t.releases.some((r) => r.behind)) return 'a newer copy or policy waits for the proxy';
  return 'shown';
}

export const tableList = (list) => table('Protected tables', [
  ['table', (t) => toTable(t.relation)], ['is', kind], ['state', state],
  ['subjects shown', (t) => cell.number(over(t, (r) => r.subjects, Math.max)), 'number'],
  ['smallest class', (t) => cell.number(over(t, (r) => r.min_block || null, Math.min) || null),
    'number'],
  ['k', (t) => cell.number(t.k), 'number'],
  ['mean loss', (t) => cell.percent(highest(t)), 'number'],
  ['as of', (t) => (t.releases.length
    ? moment(t.releases.map((r) => r.copied).sort()[0]) : '–')],
  ['who wait', (t) => cell.number(over(t, waiting, Math.max)), 'number'],
  ['readers', (t) => cell.number(t.readers), 'number'],
], list);

const command = (label, text) =>
  h('pre', { tabindex: '0', role: 'region', 'aria-label': label }, text);

export const nothingProtected = () => h('div', { class: 'first' },
  h('h2', {}, 'Begin here: no table is protected yet'),
  h('ol', {},
    h('li', {}, to('draft', {}, 'Draft a policy'), ' here, or in a terminal: what each column ' +
      'is, and how small a group may be.',
      command('Draft a policy', 'tailor policy init --dsn DSN --schema public --out policy.yaml')),
    h('li', {}, 'See what it would show and lose, before anything is in force.',
      command('See what it does', 'tailor policy plan --dsn DSN policy.yaml')),
    h('li', {}, 'Put it in force. Direct privileges of readers end then.',
      command('Put it in force', 'tailor policy apply --dsn DSN policy.yaml')),
    h('li', {}, 'Let somebody read.',
      command('Let somebody read', "CALL tailor.grant_reader('ROLE');"))),
  h('p', {}, 'This page then has, for each table, what is released of it, and to whom. ',
    to('doctor', {}, 'The doctor'), ' says whether the installation is sound.'));

export async function tables(get) {
  const list = await get('tables');
  return [h('h1', {}, 'Tables'), list.length ? [
    h('p', { class: 'quiet' }, 'What is released of each protected table. Of several audiences, ' +
      'the figures are those of the one that is shown most subjects, the smallest classes and ' +
      'the highest loss.'), tableList(list)] : nothingProtected()];
}

const days = [[24, 'day'], [24 * 7, 'week'], [24 * 30, '30 days'], [24 * 365, 'year']];

// table is the page of one. (The name is that of the section, by which it is linked.)
async function tablePage(get, parameters) {
  const name = parameters.get('name') || '';
  const t = await get('table?' + parameters);
  const hours = Number(parameters.get('hours') || 24 * 30);
  const [found, trend] = await Promise.all([
    get('queries?' + new URLSearchParams({ relation: t.audited })),
    get('overview?' + new URLSearchParams({ hours, relation: t.audited })),
  ]);
  return [h('h1', {}, t.relation),
    h('p', { class: 'quiet' }, kind(t), `; column ${t.subject} tells subjects apart; `, state(t),
      '. ',
      to('table', { name }, 'Permanent link')),
    t.progress.map((p) => h('p', { role: 'status' }, `Now: ${p.phase}`,
      p.of_rows ? `, ${number(p.rows)} of ${number(p.of_rows)} rows` : '', '.')),
    t.version === null ? draft(t) : [
      t.releases.length ? t.releases.map((r) => release(t, r)) : h('p', { class: 'first' },
        'Nothing is shown yet: a proxy makes the release from the copy, or the first query does.'),
      freshness(t), h('h2', { id: 'columns' }, 'Columns'), columns(t), workload(t), fidelity(t),
    ],
    h('h2', {}, 'Who reads it'), readers(t),
    h('h2', {}, 'Latest statements'), statementsOf(t, found),
    trends(trend.buckets, hours, name),
    h('h2', {}, 'Versions of the policy'), versions(t, parameters)];
}
export { tablePage as table };

const draft = (t) => h('div', { class: 'first' },
  h('p', {}, 'The policy is a draft, and readers see nothing of the table. Put it in force:'),
  command('Put it in force', `CALL tailor.activate('${t.relation.replaceAll("'", "''")}');`));

// release is what one audience is shown: figures against what is required of them.
function release(t, r) {
  const most = t.policy.gate?.measure === 'highest' ? t.policy.gate.max_risk : 1 / t.k;
  const highest = r.min_block ? 1 / r.min_block : null;
  const card = (value, label, good) => h('div', { class: 'card' },
    h('b', { class: good === false ? 'fault' : null }, value), h('span', {}, label));
  return h('section', {},
    h('h2', {}, r.audience === 'table' ? 'What all readers are shown'
      : `What readers of ${r.audience} are shown`),
    h('div', { class: 'cards' },
      card(number(r.subjects), 'subjects'), card(number(r.rows), 'rows'),
      r.clusters ? [card(number(r.clusters), 'clusters'),
        card(`(${t.k}, ${t.m})`, 'k and m: who knows m codes finds k records')] : [
        card(number(r.blocks), 'classes'),
        card(number(r.min_block || null), `smallest class; k is ${t.k}`,
          !r.min_block || r.min_block >= t.k),
        card(risk(highest), `highest risk, of at most ${risk(most)}`,
          highest === null || highest <= most + 1e-9),
        card(percent(loss(r)), 'mean loss')]),
    t.parent && loss(r) === null ? h('p', {}, 'What it loses of the columns that it borrows from ',
      toTable(t.parent), ' is in ', to('chains', {}, 'Chains'), '.') : null,
    t.policy.rows === false ? h('p', {}, 'Rows are not shown: only aggregates are.') : null,
    r.models?.length ? table('Privacy models, counted over what is shown', [
      ['required of each class', (m) => m.phrase],
      ['classes that fail', (m) => cell.number(m.failing), 'number'],
      ['held', (m) => (m.failing ? h('span', { class: 'fault' }, 'no') : 'yes')],
    ], r.models) : null,
    r.bars?.length ? sizes(r) : null);
}

// sizes are the classes by how many subjects they have.
function sizes(r) {
  const width = 460, height = 130, left = 40, bottom = 22;
  const most = Math.max(...r.bars.map((b) => b.classes));
  const step = (width - left) / r.bars.length;
  const name = (b) => (b.from === b.to ? String(b.from) : `${b.from}–${b.to}`);
  const every = Math.ceil(r.bars.length / 8);
  const label = `Classes by size, for ${r.audience}; the figures are in the table below`;
  return [h('h3', {}, 'Classes by size'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
      s('svg', { class: 'sizes', viewBox: `0 0 ${width} ${height}`, role: 'img',
        'aria-label': label },
      [0, most].map((v) => s('text', { class: 'quiet', x: left - 6, 'text-anchor': 'end',
        y: height - bottom - (v / most) * (height - bottom - 14) + 4 }, number(v))),
      r.bars.map((b, i) => {
        const high = (b.classes / most) * (height - bottom - 14);
        return [s('rect', { class: 'bar released', x: left + i * step + 1,
          width: Math.max(1, step - 2), y: height - bottom - high, height: high }),
        i % every ? '' : s('text', { class: 'quiet', x: left + i * step + 1, y: height - 6 },
          name(b))];
      }))),
    h('details', {}, h('summary', {}, 'Figures'), table('Classes by size', [
      ['subjects', name], ['classes', (b) => cell.number(b.classes), 'number'],
    ], r.bars))];
}

function freshness(t) {
  const since = (n, when, what) => (n ? h('li', {}, `${number(n)} ${what}`,
    when ? [', since ', moment(when), ` (${ago(when)})`] : '') : null);
  const plan = t.schedule;
  const every = plan && plan.every.replace(/^0*(\d+):00:00$/, '$1 h');
  return [h('h2', {}, 'How fresh it is, and who waits'),
    h('dl', {},
      h('dt', {}, 'last copy'), h('dd', {}, t.refreshed
        ? [moment(t.refreshed), ` (${ago(t.refreshed)})`] : 'none'),
      h('dt', {}, 'schedule'), h('dd', {}, !plan ? 'none; by hand:'
        : plan.on_change ? `when the table has changed, at most every ${every}`
          : `every ${every}`),
      plan && [h('dt', {}, 'next refresh'), h('dd', {}, moment(plan.due))],
      plan && plan.tried && [h('dt', {}, 'last tried'), h('dd', {}, moment(plan.tried))],
      plan && plan.failed ? [h('dt', {}, 'failed'), h('dd', { class: 'fault' },
        `${number(plan.failed)} times in a row: ${plan.failure || ''}`)] : null),
    plan || t.data_set ? null : command('Statement that makes a new copy',
      `CALL tailor.refresh('${t.relation.replaceAll("'", "''")}');`),
    t.data_set ? h('p', {}, 'A data set is refreshed with ', toTable(t.parent), '.') : null,
    t.releases.map((r) => [
      h('h3', {}, r.audience === 'table' ? 'Who waits' : `Who waits, of ${r.audience}`),
      h('p', {}, 'What is shown is as of ', moment(r.copied), ` (${ago(r.copied)}).`,
        r.behind ? ' A newer copy or policy is not taken in yet.' : ''),
      waiting(r) ? [h('ul', {},
        since(r.arrivals, r.arrivals_since, 'to be shown'),
        since(r.departures, r.departures_since,
          `to go (${percent(r.stale)} of those who are shown)`),
        since(r.changes, r.changes_since, 'to be shown as they are now')),
      r.next && h('p', { class: 'quiet' }, `Next: ${r.next}.`)]
        : h('p', {}, 'Nobody waits.'),
    ])];
}

// columns are those of the policy in force, with how exact each is in each release.
function columns(t) {
  // Codes are exact, but which of them are one person's is not.
  const shown = (c, r) => (t.m ? null : r.columns.find((found) => found.name === c.name));
  const label = (c) => (c.class || 'none: hidden').replaceAll('_', ' ')
    + (c.action === 'pseudonym' ? ', as a pseudonym' : '');
  const of = (r) => (t.releases.length > 1 ? `, ${r.audience}` : '');
  return table(`Columns of ${t.relation}, version ${t.version}`, [
    ['column', (c) => c.name], ['type', (c) => c.type], ['class', label],
    ...t.releases.flatMap((r) => [
      ['share exact' + of(r), (c) => cell.percent(shown(c, r)?.exact), 'number'],
      ['loss' + of(r), (c) => cell.percent(shown(c, r)?.loss), 'number'],
    ]),
    ['hierarchy', treeOf, 'hierarchy'],
  ], t.policy.columns || []);
}

// workload sets the combinations that releases are made for against what they lose.
function workload(t) {
  if (!t.workload.length) return null;
  const audience = (w) => t.releases.find((r) => r.audience === `project ${w.project}`)
    || t.releases.find((r) => r.audience === 'table');
  const figures = (w, key) => (audience(w)?.columns || [])
    .filter((c) => w.columns.includes(c.name)).map((c) => c[key]);
  return [h('h2', {}, 'Declared workload'),
    table('Combinations that the release is made for', [
      ['of', (w) => (w.project ? `project ${w.project}` : 'the policy')],
      ['columns', (w) => w.columns.join(', ')],
      ['mean loss', (w) => {
        const found = figures(w, 'loss');
        return cell.percent(found.length
          ? found.reduce((a, b) => a + b, 0) / found.length : null);
      }, 'number'],
      ['least exact', (w) => {
        const found = figures(w, 'exact');
        return cell.percent(found.length ? Math.min(...found) : null);
      }, 'number'],
    ], t.workload)];
}

// fidelity has how far answers were off when that was measured.
function fidelity(t) {
  const title = h('h2', {}, 'Fidelity');
  if (!t.fidelity) {
    return [title, h('p', {}, 'Nobody has measured how far answers are off. For a file of queries:'),
      command('Measure how far answers are off', 'tailor fidelity --dsn OWNER --proxy READER ' +
        '--workload FILE.sql --keep')];
  }
  const { version, measured, author, summary: f } = t.fidelity;
  return [title,
    h('p', {}, `Relative errors of ${number(f.compared)} queries of ${number(f.queries)}, `,
      'measured ', moment(measured), ` (${ago(measured)}) by ${author}`,
      version === t.version ? '.' : `, under version ${version} of the policy.`),
    h('dl', {},
      h('dt', {}, 'large cells'), h('dd', {}, number(f.cells)),
      h('dt', {}, 'median error'), h('dd', {}, percent(f.median)),
      h('dt', {}, '90 % are off by at most'), h('dd', {}, percent(f.p90)),
      h('dt', {}, 'groups that are shown'), h('dd', {}, percent(f.coverage))),
    table('Which columns errors come with', [
      ['column', (c) => c.name], ['queries', (c) => cell.number(c.queries), 'number'],
      ['share of all error', (c) => cell.percent(c.share), 'number'],
      ['median error', (c) => cell.percent(c.median), 'number'],
      ['90 % at most', (c) => cell.percent(c.p90), 'number'],
    ], f.columns),
    f.refused.length ? table('Queries that were refused', [
      ['query', (q) => q.name], ['reason', (q) => q.reason],
    ], f.refused) : null];
}

function readers(t) {
  if (!t.reader_list.length) {
    return h('div', { class: 'first' }, h('p', {}, 'Nobody reads yet. Let somebody:'),
      command('Let somebody read', "CALL tailor.grant_reader('ROLE');"));
  }
  return [t.scope === 'project' ? h('p', {}, 'Only readers of a project of this table see it.')
    : null, table('Readers, and what they asked of it in the last 30 days', [
    ['role', (r) => to('queries', { principal: r.role, relation: t.audited }, r.role)],
    ['project', (r) => r.projects.join(', ')],
    ['released', (r) => cell.number(r.released), 'number'],
    ['last', (r) => (r.last ? moment(r.last) : 'never')],
  ], t.reader_list)];
}

// The log does not say over which tables a statement is that was refused: those that name it are
// searched.
const statementsOf = (t, found) => [found.entries.length
  ? [statementTable(`Latest statements over ${t.relation}`, found.entries.slice(0, 10)),
    h('p', {}, to('queries', { relation: t.audited }, `All statements over ${t.relation}`))]
  : h('p', { class: 'first' }, 'Nobody has asked anything of this table yet.'),
h('p', {}, to('queries', { q: t.audited.split('.').at(-1), verdict: 'refused' },
  'Refused statements that name it'))];

function trends(buckets, hours, name) {
  if (!buckets.some((b) => b.released || b.refused || b.failed || b.passed)) return null;
  return [h('h2', {}, 'Trends'),
    h('form', {}, h('label', {}, 'Time', h('select', {
      name: 'hours', id: 'hours',
      onchange: (event) => {
        location.hash = '#table?' + new URLSearchParams({ name, hours: event.target.value });
      },
    }, days.map(([n, span]) => h('option', { value: n, selected: n === hours },
      'last ' + span))))),
    verdictChart(buckets), lossChart(buckets)];
}

// versions lists them with what was released under each, and compares two.
function versions(t, parameters) {
  if (!t.versions.length) return h('p', { class: 'first' }, 'None is in force yet.');
  const last = t.versions[0].version;
  const from = Number(parameters.get('from') || t.versions[1]?.version || last);
  const until = Number(parameters.get('to') || last);
  const choice = (name, label, chosen) => h('label', {}, label, h('select', { name, id: name },
    t.versions.map((v) => h('option', { value: v.version, selected: v.version === chosen },
      `version ${v.version}`))));
  const compare = (event) => {
    event.preventDefault();
    const chosen = new FormData(event.target);
    location.hash = '#table?' + new URLSearchParams({
      name: t.relation, from: chosen.get('from'), to: chosen.get('to'),
    });
  };
  return [table('Versions, and what was released while each was in force', [
    ['version', (v) => cell.number(v.version), 'number'],
    ['in force', (v) => (v.active ? 'yes' : 'no')],
    ['since', (v) => moment(v.created)], ['by', (v) => v.author],
    ['k', (v) => cell.number(v.k), 'number'],
    ['released', (v) => cell.number(v.released), 'number'],
    ['mean loss', (v) => cell.percent(v.mean_loss), 'number'],
    ['highest risk', (v) => cell.risk(v.max_risk), 'number'],
    ['smallest class', (v) => cell.number(v.min_block), 'number'],
  ], t.versions),
  t.versions.length > 1 ? h('form', { id: 'compare', onsubmit: compare },
    choice('from', 'from', from), choice('to', 'to', until),
    h('button', { class: 'main', type: 'submit' }, 'Compare')) : null,
  t.compared ? comparison(t) : null];
}

function comparison(t) {
  const { from, to: until, differences } = t.compared;
  const of = (n) => t.versions.find((v) => v.version === n);
  const effect = [['mean loss', 'mean_loss', cell.percent], ['highest risk', 'max_risk', cell.risk],
    ['smallest class', 'min_block', cell.number], ['released', 'released', cell.number]];
  return h('section', { id: 'compared' }, h('h3', {}, `From version ${from} to ${until}`),
    differences.length ? h('ul', {}, differences.map((d) => h('li', {}, d)))
      : h('p', {}, 'They are the same.'),
    table('Effect: what was released while each was in force', [
      ['of statements', ([name]) => name],
      [`version ${from}`, ([, key, show]) => show(of(from)[key]), 'number'],
      [`version ${until}`, ([, key, show]) => show(of(until)[key]), 'number'],
    ], effect));
}
