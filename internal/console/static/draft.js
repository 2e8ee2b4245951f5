// A first policy of a schema: what each column could be, what settings would lose and risk, and
// the file that comes of it. Nothing is changed in the database.
import { h, percent, number, table, to } from './dom.js';

// lines reads an answer that comes line by line, and returns what the last one has.
async function lines(path, signal, status) {
  const response = await fetch('api/' + path, { credentials: 'same-origin', signal });
  if (!response.ok) {
    const { error } = await response.json();
    throw Object.assign(new Error(error), { status: response.status });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error('the proxy has ended the answer; try again');
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    for (const line of parts.map(JSON.parse)) {
      if (line.draft) return line.draft;
      if (line.error) throw new Error(line.error);
      status(line.status);
    }
  }
}

// leaving ends what a page has begun when another one is gone to.
function leaving() {
  const end = new AbortController();
  window.addEventListener('hashchange', () => end.abort(), { once: true });
  return end.signal;
}

const answerOf = (table, column, answer) => [table, column, answer].join('\t');

// answered are the parameters of the page with an answer more, or another one.
function answered(parameters, name, column, answer) {
  const next = new URLSearchParams(parameters);
  const others = next.getAll('answer').filter((text) => {
    const [t, c] = text.split('\t');
    // Another subject changes what is suggested of the columns.
    return t !== name || (column !== '' && c !== column);
  });
  next.delete('answer');
  for (const text of others) next.append('answer', text);
  next.append('answer', answerOf(name, column, answer));
  return next;
}

const go = (parameters) => { location.hash = '#draft?' + parameters; };

const choose = (label, chosen, choices, change) => h('select', {
  'aria-label': label, onchange: (event) => change(event.target.value),
}, choices.map(([value, text]) => h('option', { value, selected: value === chosen }, text)));

function draftedTable(t, parameters) {
  const change = (column, answer) => go(answered(parameters, t.name, column, answer));
  const subject = h('label', {}, 'Whom is a row about?',
    choose(`Subject of ${t.name}`, t.left ? 'x' : t.subject,
      [...t.subjects.map((name) => [name, name]), ['x', 'leave the table out']],
      (answer) => change('', answer)));
  return h('section', { class: 'drafted' }, h('h2', {}, t.name),
    h('p', { class: 'quiet' }, t.measured), h('form', {}, subject),
    t.left ? h('p', {}, `Left out: ${t.left}.`) : table(`Columns of ${t.name}`, [
      ['column', (c) => c.name, 'name'],
      ['class', (c) => choose(`Class of ${c.name}`, c.class,
        c.choices.map(({ letter, name }) => [letter, name]), (letter) => change(c.name, letter))],
      ['type', (c) => c.type],
      ['values', (c) => number(c.values), 'number'],
      ['rows with one of their own', (c) => percent(c.singles), 'number'],
      ['missing', (c) => percent(c.missing), 'number'],
      ['why', (c) => [c.remark, c.tells.length ? `; it tells ${c.tells.join(', ')}` : '',
        c.hierarchy ? h('div', { class: 'quiet' }, 'generalized by ', h('code', {}, c.hierarchy))
          : null], 'reason'],
    ], t.columns));
}

function compared(draft, parameters) {
  const rows = draft.settings.flatMap((g, i) => g.effects.map((e, j) => ({ ...g, ...e, i, j })));
  const take = (n) => {
    const next = new URLSearchParams(parameters);
    next.set('setting', n);
    go(next);
  };
  return [h('h2', {}, 'What settings would lose and risk'),
    h('p', { class: 'quiet' }, 'If everything is asked for: K people cannot be told apart, and ' +
      'each of their blocks has L values of a sensitive column.'),
    table('Settings', [
      ['take', (e) => (e.j ? '' : h('input', {
        type: 'radio', name: 'setting', checked: e.i + 1 === draft.chosen,
        'aria-label': `k = ${e.k}, l = ${e.l}`, onchange: () => take(e.i + 1),
      }))],
      ['k', (e) => (e.j ? '' : number(e.k)), 'number'],
      ['l', (e) => (e.j ? '' : number(e.l)), 'number'],
      ['table', (e) => e.table], ['loss', (e) => e.loss, 'number'],
      ['highest risk', (e) => e.risk],
    ], rows)];
}

function fileOf(draft) {
  const save = () => {
    const link = h('a', {
      href: URL.createObjectURL(new Blob([draft.file], { type: 'application/yaml' })),
      download: 'policy.yaml',
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60e3);
  };
  return [h('h2', {}, 'The policy'),
    h('p', {}, 'Nothing is in force. Read the file, name its readers and the groups of its ' +
      'hierarchies, then see what it would show (tailor policy plan) and apply it (tailor ' +
      'policy apply).'),
    h('p', {}, h('button', { type: 'button', class: 'main', onclick: save }, 'Save policy.yaml')),
    h('pre', { id: 'policy', tabindex: '0', role: 'region', 'aria-label': 'Policy as YAML' },
      draft.file)];
}

export async function draft(get, parameters) {
  const schemas = await get('schemas');
  const schema = parameters.get('schema');
  const begin = (event) => {
    event.preventDefault();
    const chosen = new FormData(event.target);
    go(new URLSearchParams([...chosen].filter(([, value]) => value)));
  };
  const top = [h('h1', {}, 'Draft a policy'),
    h('p', { class: 'quiet' }, 'Measures the tables of a schema that you may read, and proposes ' +
      'a policy for them, as tailor policy init does. Nothing is changed in the database.'),
    h('form', { onsubmit: begin },
      h('label', {}, 'Schema', h('select', { name: 'schema', id: 'schema' },
        schemas.map((name) => h('option', { selected: name === schema }, name)))),
      h('label', {}, 'k of your own', h('input', {
        name: 'k', type: 'number', min: 2, max: 10000, value: parameters.get('k'),
      })),
      h('button', { class: 'main', type: 'submit' }, schema ? 'Begin anew' : 'Measure'))];
  if (!schema) return top;
  const status = h('p', { role: 'status' }, 'Measuring …');
  const made = h('div', {});
  lines('draft?' + parameters, leaving(), (text) => { status.textContent = text + ' …'; }).then(
    (found) => {
      status.remove();
      made.append(...[
        found.tables.map((t) => draftedTable(t, parameters)),
        found.settings ? compared(found, parameters) : null,
        found.out.length ? [h('h2', {}, 'Left out'),
          h('ul', {}, found.out.map((reason) => h('li', {}, reason)))] : null,
        found.file ? fileOf(found) : h('p', { class: 'first' }, 'No table is left to protect. ',
          to('tables', {}, 'Tables that are protected'), '.'),
      ].flat(Infinity).filter(Boolean));
    },
    (error) => {
      if (error.name === 'AbortError') return;
      status.replaceWith(h('p', { class: 'fault', role: 'alert' }, error.message));
    });
  return [...top, status, made];
}
