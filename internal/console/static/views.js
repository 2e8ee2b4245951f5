// The sections of the page. A view takes what it needs from the server and
// gives the elements to show.
import { h, s, percent, risk, moment, number, verdict, table } from './dom.js';
import { verdictChart, lossChart } from './charts.js';
import { graph } from './graph.js';

const spans = [[1, 'hour'], [24, 'day'], [24 * 7, 'week'], [24 * 30, '30 days'], [24 * 365, 'year']];

export async function overview(get, parameters) {
  const hours = Number(parameters.get('hours') || 24);
  const since = new Date(Date.now() - hours * 3600e3).toISOString();
  const [buckets, totals] = await Promise.all([get('overview?hours=' + hours), get('totals?since=' + encodeURIComponent(since))]);
  const sum = (key) => buckets.reduce((all, b) => all + b[key], 0);
  return [h('h1', {}, 'Overview'),
    h('form', {}, h('label', {}, 'Time', h('select', { name: 'hours', id: 'hours', onchange: (e) => { location.hash = '#overview?hours=' + e.target.value; } },
      spans.map(([n, name]) => h('option', { value: n, selected: n === hours }, 'last ' + name))))),
    h('div', { class: 'cards' }, ['released', 'passed', 'refused', 'failed'].map((v) => h('div', { class: 'card' }, h('b', { id: 'sum-' + v }, number(sum(v))), verdict(v)))),
    h('h2', {}, 'Statements by verdict'), verdictChart(buckets), h('h2', {}, 'Loss and risk of what was released'), lossChart(buckets),
    h('h2', {}, 'By principal and relation'), table('Totals of the time above', [
      ['principal', (t) => h('a', { href: '#queries?principal=' + encodeURIComponent(t.principal) }, t.principal || '–')], ['relation', (t) => t.relation || '–'],
      ...['released', 'refused', 'failed', 'passed', 'rows'].map((key) => [key, (t) => number(t[key]), 'number']),
      ['highest risk', (t) => risk(t.max_risk), 'number'], ['mean loss', (t) => percent(t.mean_loss), 'number'], ['smallest block', (t) => number(t.min_block || null), 'number'],
    ], totals || [])];
}

export async function queries(get, parameters) {
  const entries = await get('queries?' + parameters);
  const field = (name, label, attributes) => h('label', {}, label, h('input', { name, id: name, value: parameters.get(name) || '', ...attributes }));
  const search = (event) => {
    event.preventDefault();
    const chosen = new URLSearchParams([...new FormData(event.target)].filter(([, v]) => v));
    for (const name of ['since', 'until']) if (chosen.has(name)) chosen.set(name, new Date(chosen.get(name)).toISOString());
    location.hash = '#queries?' + chosen;
  };
  const local = (name) => {
    if (!parameters.get(name)) return '';
    const t = new Date(parameters.get(name));
    return new Date(t - t.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
  };
  const older = new URLSearchParams(parameters);
  if (entries.length) older.set('before', entries[entries.length - 1].position);
  return [h('h1', {}, 'Statements'),
    h('form', { id: 'filter', onsubmit: search, role: 'search' },
      field('since', 'from', { type: 'datetime-local', value: local('since') }), field('until', 'before', { type: 'datetime-local', value: local('until') }),
      field('principal', 'principal'), field('relation', 'relation'),
      h('label', {}, 'verdict', h('select', { name: 'verdict', id: 'verdict' }, ['', 'released', 'passed', 'refused', 'failed'].map((v) => h('option', { value: v, selected: v === (parameters.get('verdict') || '') }, v || 'any')))),
      field('risk', 'risk above', { type: 'number', min: 0, max: 1, step: 'any' }), field('loss', 'loss above', { type: 'number', min: 0, max: 1, step: 'any' }),
      h('button', { class: 'main', type: 'submit' }, 'Filter'), h('a', { href: '#queries' }, 'Clear')),
    table('The last statements', [
      ['time', (e) => h('a', { href: '#query?id=' + e.id }, moment(e.time))], ['verdict', (e) => verdict(e.verdict)], ['SQLSTATE', (e) => e.sqlstate], ['principal', (e) => e.principal],
      ['relations', (e) => (e.relations || []).join(', ')], ['risk', (e) => risk(e.aggregate_risk), 'number'], ['loss', (e) => (e.min_block ? percent(e.aggregate_loss) : '–'), 'number'],
      ['rows', (e) => number(e.rows), 'number'], ['statement', (e) => (e.event === 'login' ? 'login' : e.sql), 'sql'],
    ], entries),
    entries.length ? h('p', {}, h('a', { href: '#queries?' + older }, 'Older')) : h('p', {}, 'None.')];
}

export async function query(get, parameters) {
  const e = await get('queries/' + encodeURIComponent(parameters.get('id')));
  const facts = [['time', moment(e.time)], ['verdict', verdict(e.verdict)], ['SQLSTATE', e.sqlstate], ['principal', e.principal], ['client', e.client], ['session', e.session], ['database', e.database],
    ['relations', (e.relations || []).join(', ')], ['policy version', e.policy_version || ''], ['epoch', e.epoch || ''], ['chain', e.chain || ''], ['rows', number(e.rows)],
    ['duration', e.duration_ms ? e.duration_ms.toFixed(1) + ' ms' : ''], ['planning', e.plan_ms ? e.plan_ms.toFixed(1) + ' ms' : ''], ['fingerprint', e.fingerprint], ['record', e.id], ['hash', e.hash]];
  return [h('h1', {}, 'Statement'), h('pre', { tabindex: '0', 'aria-label': 'Text without literals' }, e.sql || (e.event === 'login' ? 'A login that was refused.' : 'The text is not kept.')),
    h('dl', {}, facts.filter(([, v]) => v !== '' && v !== undefined).map(([name, v]) => [h('dt', {}, name), h('dd', {}, v)])),
    h('h2', {}, 'Execution chain graph'),
    e.stages && e.stages.length ? graph(e) : h('p', {}, e.verdict === 'released' ? 'The statement needed no quasi-identifier: there are no stages.' : 'Nothing was released: there are no stages.')];
}

export async function chains(get) {
  const list = await get('chains');
  const room = (c) => (c.subjects && c.k ? Math.max(0, 1 - (c.blocks * c.k) / c.subjects) : null);
  return [h('h1', {}, 'Chains'), h('p', { class: 'quiet' }, 'How fine the root is that each audience is shown. At most subjects / k blocks can be told apart; what is left could not be cut without more loss.'),
    table('Chains', [
      ['relation', (c) => c.relation], ['audience', (c) => c.audience], ['epoch', (c) => c.epoch, 'number'], ['generation', (c) => number(c.generation), 'number'], ['blocks', (c) => number(c.blocks), 'number'],
      ['smallest block', (c) => (c.blocks ? number(c.min_block) : '–'), 'number'], ['k', (c) => c.k, 'number'],
      ['room left', (c) => [h('meter', { min: 0, max: 1, value: room(c) ?? 0, 'aria-label': 'room left' }), ' ' + percent(room(c))], 'room'],
      ['mean loss', (c) => percent(c.together), 'number'], ['last asked along', (c) => (c.asked ? `${c.asked.join(', ')} (loss ${percent(c.loss)})` : '–')], ['changed', (c) => moment(c.changed)],
    ], list),
    h('h2', {}, 'Loss by column'), h('p', { class: 'quiet' }, 'What each quasi-identifier loses in the partition as it is: 0 % shows every value, 100 % shows none. A chain that waits for a newer epoch has no figures until a proxy has carried it over.'),
    list.filter((c) => c.losses).map((c) => h('section', { class: 'columns' }, h('h3', {}, `${c.relation}, ${c.audience}`), h('dl', { class: 'bars' },
      Object.entries(c.losses).map(([name, loss]) => [h('dt', {}, name), h('dd', {}, lossBar(loss), ' ' + percent(loss))]))))];
}

const lossBar = (loss) => s('svg', { class: 'loss', viewBox: '0 0 100 8', width: 160, height: 12, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
  s('rect', { class: 'all', width: 100, height: 8 }), s('rect', { class: 'lost', width: 100 * loss, height: 8 }));

export async function policies(get) {
  const list = await get('policies');
  return [h('h1', {}, 'Policies'), list.length ? list.map((p) => h('details', { open: p.active },
    h('summary', {}, h('strong', {}, p.relation), ` version ${p.version}${p.active ? ', in force' : ''}, by ${p.author}, `, moment(p.created)),
    h('p', {}, `Subject ${p.subject}, k = ${p.k}, recoding ${p.recoding}, root by ${p.scope}`, (p.require || []).map((r) => `, ${r.model} of ${r.parameter}${r.c ? ` with c = ${r.c}` : ''}${r.distance ? ` by ${r.distance} distance` : ''} on ${r.column}`)),
    p.differences && [h('h3', {}, 'Changed from the version before'), p.differences.length ? h('ul', {}, p.differences.map((d) => h('li', {}, d))) : h('p', {}, 'Nothing.')],
    table(`Columns of ${p.relation}, version ${p.version}`, [
      ['column', (c) => c.name], ['type', (c) => c.type], ['class', (c) => (c.class || 'none: hidden').replaceAll('_', ' ') + (c.shared_fact === 'accepted' ? ', shared fact accepted' : '')], ['action', (c) => (c.class === 'direct_identifier' ? c.action : '')],
      ['hierarchy', (c) => c.hierarchy && [h('span', {}, `${c.hierarchy.name} (${c.hierarchy.kind})`), c.note && h('div', { class: 'quiet' }, c.note),
        c.tree && h('details', {}, h('summary', {}, `Tree of ${c.hierarchy.name}`), h('ul', { class: 'tree' }, branch(c.tree)))]],
    ], p.columns || []))) : h('p', {}, 'No table is protected yet.')];
}

function branch(node) {
  const children = node.children || [];
  const rest = node.more ? h('li', { class: 'quiet' }, node.more) : null;
  if (!children.length) return h('li', {}, node.label, node.more ? h('span', { class: 'quiet' }, ` (${node.more})`) : null);
  return h('li', {}, h('details', { open: node.label === '*' }, h('summary', {}, node.label), h('ul', {}, children.map(branch), rest)));
}

const bytes = (n) => {
  const unit = Math.min(4, Math.floor(Math.log2(n || 1) / 10));
  return n ? (n / 1024 ** unit).toFixed(unit ? 1 : 0) + ' ' + ['B', 'KB', 'MB', 'GB', 'TB'][unit] : '–';
};

export async function epochs(get) {
  const [list, waiting] = await Promise.all([get('epochs'), get('waiting')]);
  const since = (n, when) => (n ? `${number(n)} since ${moment(when)}` : '0');
  const days = (e) => Math.floor((Date.now() - new Date(e.created)) / 864e5);
  return [h('h1', {}, 'Epochs'), h('p', { class: 'quiet' }, 'Stored copies that releases are made from. A proxy carries what readers are shown to the current one; a copy that no chain is on is given up.'),
    table('Epochs', [['epoch', (e) => e.epoch, 'number'], ['relation', (e) => e.relation], ['policy version', (e) => e.version, 'number'], ['created', (e) => moment(e.created)], ['age', (e) => `${number(days(e))} d`, 'number'], ['rows', (e) => number(e.rows), 'number'],
      ['distinct tuples', (e) => number(e.tuples), 'number'], ['subjects', (e) => number(e.subjects), 'number'], ['chains on it', (e) => number(e.chains), 'number'], ['on the disk', (e) => bytes(e.bytes), 'number'], ['current', (e) => (e.current ? 'yes' : 'no')]], list),
    table('Who waits', [['relation', (w) => w.relation], ['audience', (w) => w.audience], ['copied', (w) => moment(w.copied)], ['subjects shown', (w) => number(w.subjects), 'number'],
      ['to be shown', (w) => since(w.arrivals, w.arrivals_since)], ['to go', (w) => since(w.departures, w.departures_since)], ['to be shown as they are now', (w) => since(w.changes, w.changes_since)],
      ['have left', (w) => `${(100 * w.stale).toFixed(1)} %`, 'number'], ['next', (w) => w.next]], waiting),
    h('h2', {}, 'Refresh'), h('p', { class: 'quiet' }, 'A new epoch reads the table anew. Run as a database administrator, or on a schedule of your own:'),
    list.filter((e) => e.current).map((e) => h('pre', { tabindex: '0', 'aria-label': 'Statement that refreshes ' + e.relation }, e.refresh))];
}

export async function doctor(get) {
  const { checks, findings } = await get('findings');
  const count = (severity) => findings.filter((f) => f.severity === severity).length;
  return [h('h1', {}, 'Doctor'), h('p', { class: 'quiet' }, `Ways round the proxy, and what else is wrong with the installation: the ${checks} checks of tailor doctor, made now, as far as the proxy's own role may look.`),
    h('div', { class: 'cards' }, [['serious', 'failed', 'serious findings'], ['warning', 'refused', 'warnings'], ['unknown', 'passed', 'checks not made']].map(([severity, kind, name]) => h('div', { class: 'card' },
      h('b', { id: 'count-' + severity }, number(count(severity))), h('span', { class: 'verdict ' + kind }, name)))),
    findings.length ? findings.map((f) => h('section', { class: 'finding ' + f.severity }, h('h2', {}, `${f.object === '-' ? f.check : f.object}`), h('p', {}, h('strong', {}, f.severity), `: ${f.message} `, h('span', { class: 'quiet' }, `(${f.check})`)),
      h('pre', { tabindex: '0', 'aria-label': 'What mends it' }, f.mend))) : h('p', {}, 'Nothing was found.')];
}
