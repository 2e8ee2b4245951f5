// Signs in, shows the section that the address names, and keeps it up to date.
import { h, zone } from './dom.js';
import * as views from './views.js';

const sections = [
  ['overview', 'Overview'], ['tables', 'Tables'], ['queries', 'Statements'], ['chains', 'Chains'],
  ['policies', 'Policies'], ['epochs', 'Epochs'], ['doctor', 'Doctor'],
];
// Pages that belong to a section.
const below = { query: 'queries', table: 'tables', draft: 'policies' };
// Sections that change with every statement.
const lively = ['overview', 'queries'];

const main = document.getElementById('main');
let token = '', stream = null, drawing = 0;

async function ask(path, options) {
  const response = await fetch('api/' + path, { ...options, credentials: 'same-origin' });
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.error), { status: response.status });
  return body;
}

const post = (path, body) => ask(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Tailor-Token': token },
  body: JSON.stringify(body),
});

function place() {
  const [name, rest] = location.hash.slice(1).split(/\?(.*)/s);
  return [name in views ? name : 'overview', new URLSearchParams(rest || '')];
}

async function show(fresh) {
  const [name, parameters] = place();
  const turn = ++drawing;
  let elements;
  try {
    elements = await views[name](ask, parameters);
  } catch (error) {
    if (error.status === 401) return signedOut(error.message);
    elements = [h('h1', {}, error.status === 404 ? 'Not found' : 'Not shown'),
      h('p', { class: 'fault', role: 'alert' }, error.message)];
  }
  if (turn !== drawing) return; // a later one has been asked for
  for (const link of document.querySelectorAll('#tabs a')) {
    const here = link.hash === '#' + (below[name] || name);
    if (here) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  main.replaceChildren(...elements.flat(Infinity).filter(Boolean));
  // The last of a chart is what one looks for.
  for (const chart of main.querySelectorAll('.scroll:has(svg.chart)')) {
    chart.scrollLeft = chart.scrollWidth;
  }
  document.title = (main.querySelector('h1')?.textContent || 'Not found') + ' – Tailor';
  if (fresh) main.focus();
}

// News are shown unless somebody is in the midst of something.
function news() {
  const [name, parameters] = place();
  const busy = main.contains(document.activeElement) && document.activeElement !== main;
  const reading = parameters.has('before') || main.querySelector('details[open]:not(.more)');
  if (lively.includes(name) && !busy && !reading) show(false);
}

function listen() {
  const status = document.getElementById('live');
  stream = new EventSource('api/live');
  let first = true;
  stream.onopen = () => { status.textContent = 'live'; };
  stream.onmessage = () => { if (!first) news(); first = false; };
  stream.onerror = () => {
    status.textContent = 'reconnecting';
    if (stream.readyState !== EventSource.CLOSED) return;
    ask('session').then(listen, (error) => error.status === 401 && signedOut(error.message));
  };
}

function signedIn(session) {
  token = session.token;
  document.getElementById('tabs').replaceChildren(...sections.map(([name, title]) =>
    h('a', { href: '#' + name }, title)));
  document.getElementById('principal').textContent = session.principal;
  for (const id of ['tabs', 'who']) document.getElementById(id).hidden = false;
  listen();
  show(true);
}

function signedOut(reason) {
  stream?.close();
  token = '';
  for (const id of ['tabs', 'who']) document.getElementById(id).hidden = true;
  const problem = h('p', { class: 'fault', role: 'alert' }, reason || '');
  const submit = async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    try {
      signedIn(await post('login', given));
    } catch (error) {
      problem.textContent = error.message;
      document.getElementById('password').value = '';
    }
  };
  document.title = 'Sign in – Tailor';
  const field = (name, label, attributes) => h('label', {}, label,
    h('input', { name, id: name, required: true, ...attributes }));
  main.replaceChildren(h('form', { class: 'login', onsubmit: submit }, h('h1', {}, 'Sign in'),
    h('p', { class: 'quiet' }, 'With a database role that is a member of tailor_admin.'),
    field('user', 'Role', { autocomplete: 'username' }),
    field('password', 'Password', { type: 'password', autocomplete: 'current-password' }),
    h('button', { class: 'main', type: 'submit' }, 'Sign in'), problem));
  document.getElementById('user').focus();
}

// What is folded away is printed.
let closed = [];
window.addEventListener('beforeprint', () => {
  closed = [...main.querySelectorAll('details:not([open])')];
  for (const details of closed) details.open = true;
});
window.addEventListener('afterprint', () => {
  for (const details of closed) details.open = false;
});

document.getElementById('zone').textContent = zone();
document.getElementById('signout').addEventListener('click',
  () => post('logout', {}).finally(() => signedOut('')));
window.addEventListener('hashchange', () => show(true));
ask('session').then(signedIn, (error) => signedOut(error.status === 401 ? '' : error.message));
