// Elements without HTML in strings: what clients wrote is text and stays text.
import { download } from './csv.js';

const svgSpace = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(svgSpace, tag), attributes, children);

const nothing = (value) => value === null || value === undefined;
export const percent = (share) => (nothing(share) ? '–' : (100 * share).toFixed(1) + ' %');
export const risk = (value) => (value ? value.toFixed(3) : '–');
export const number = (n) => (nothing(n) ? '–' : Number(n).toLocaleString());
export const verdict = (name) => h('span', { class: 'verdict ' + name }, name);

// cell has figures as tables show them; an export takes their values as they are.
const valued = (show) => (value) =>
  h('data', { value: nothing(value) ? '' : value }, show(value));
export const cell = { percent: valued(percent), risk: valued(risk), number: valued(number) };

// moment is a time in the reader's zone; pointing at it tells the time in UTC.
export function moment(text) {
  const time = new Date(text);
  const exact = time.toISOString();
  return h('time', { datetime: exact, title: exact.replace('T', ' ').replace('Z', ' UTC') },
    time.toLocaleString());
}

// ago is about how long ago a time is.
export function ago(text) {
  const seconds = (Date.now() - new Date(text)) / 1000;
  const units = [[86400, 'day'], [3600, 'hour'], [60, 'minute']];
  const [size, unit] = units.find(([size]) => Math.abs(seconds) >= size) || [60, 'minute'];
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  return Math.abs(seconds) < 60 ? 'just now' : format.format(-Math.round(seconds / size), unit);
}

// zone is that in which times are shown.
export function zone() {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const name = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' })
    .formatToParts().find((part) => part.type === 'timeZoneName').value;
  if (timeZone === 'UTC') return 'Times are in UTC.';
  return `Times are those of ${timeZone} (${name.replace('GMT', 'UTC')}); a CSV file has UTC.`;
}

// to is a link to a section with parameters: the same page for whoever follows it.
export function to(section, parameters, ...children) {
  const given = Object.entries(parameters).filter(([, v]) => !nothing(v) && v !== '');
  return h('a', { href: `#${section}${given.length ? '?' : ''}${new URLSearchParams(given)}` },
    ...children);
}

export const toTable = (name) => to('table', { name }, name);

// table makes a table of rows; a column is [heading, function of a row, class].
export function table(caption, columns, rows) {
  if (!rows.length) return h('div', {}, h('p', { class: 'quiet' }, `${caption}: none.`));
  const made = h('table', {}, h('caption', {}, caption),
    h('thead', {}, h('tr', {}, columns.map(([name, , kind]) =>
      h('th', { scope: 'col', class: kind }, name)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, columns.map(([, show, kind]) =>
      h('td', { class: kind }, show(row)))))));
  return h('div', { class: 'exportable' },
    h('button', {
      type: 'button', class: 'csv', 'aria-label': `Download as CSV: ${caption}`,
      onclick: () => download(caption, made),
    }, 'CSV'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, made));
}
