// Tables as CSV files, as RFC 4180 has them, in UTF-8.

// A cell that a spreadsheet would take for a formula is made a text by an apostrophe. Some look
// past blanks, and some take the wide forms of the signs.
const formula = /^\s*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20]|^[\t\r\n]/;

// plain is what a cell says: times in UTC, figures with all their digits, what is chosen.
export function plain(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return '';
  if (node.dataset.csv !== undefined) return node.dataset.csv;
  switch (node.localName) {
    case 'time': return node.dateTime;
    case 'data': return node.value;
    case 'select': return node.selectedOptions[0]?.text ?? '';
    case 'input': return node.checked ? 'yes' : 'no';
    case 'meter': case 'svg': case 'button': return '';
  }
  return [...node.childNodes].map(plain).join('');
}

export function field(text) {
  const said = text.trim() === '–' ? '' : text.replace(/\s+$/, '');
  const safe = formula.test(said) ? "'" + said : said;
  return /[",\r\n]|^\s|'/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csv = (table) => [...table.rows].map((row) =>
  [...row.cells].map((cell) => field(plain(cell))).join(',') + '\r\n').join('');

export function download(caption, table) {
  // The mark at the beginning tells spreadsheets that it is UTF-8.
  const blob = new Blob(['\ufeff', csv(table)], { type: 'text/csv;charset=utf-8' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  const name = caption.replaceAll(/[^\p{L}\p{N}]+/gu, '-').replaceAll(/^-|-$/g, '');
  link.download = `${name}-${new Date().toISOString().slice(0, 10)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60e3);
}
