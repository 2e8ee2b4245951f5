// Elements without HTML in strings: what clients wrote is text and stays text.

const svgSpace = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(svgSpace, tag), attributes, children);

export const percent = (share) => (share === null || share === undefined ? '–' : (100 * share).toFixed(1) + ' %');
export const risk = (value) => (value ? value.toFixed(3) : '–');
export const moment = (text) => h('time', { datetime: text }, new Date(text).toLocaleString());
export const number = (n) => (n === null || n === undefined ? '–' : Number(n).toLocaleString());
export const verdict = (name) => h('span', { class: 'verdict ' + name }, name);

// table makes a table of rows; a column is [heading, function of a row, class].
export function table(caption, columns, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', {}, caption),
      h('thead', {}, h('tr', {}, columns.map(([name, , kind]) => h('th', { scope: 'col', class: kind }, name)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, columns.map(([, show, kind]) => h('td', { class: kind }, show(row))))))));
}
