// The execution chain graph of one statement: its stages as nodes, table by
// table, and what came of them.
import { h, s, percent, risk, table } from './dom.js';

const boxWidth = 240, boxHeight = 140, gap = 50, rowGap = 26;

// shown are the fields that nodes and details show by themselves.
const shown = ['stage', 'place', 'table', 'qids', 'condition', 'candidates'];

export function graph(query) {
  const tables = [...new Set(query.stages.map((stage) => stage.table))];
  const details = h('div', { id: 'candidates', 'aria-live': 'polite' });
  const nodes = [], edges = [];
  let widest = 0;
  tables.forEach((name, row) => {
    const stages = query.stages.filter((stage) => stage.table === name);
    widest = Math.max(widest, stages.length);
    stages.forEach((stage, column) => nodes.push(stageNode(stage, at(column, row), details)));
  });
  const middle = at(widest, (tables.length - 1) / 2);
  tables.forEach((name, row) => {
    const count = query.stages.filter((stage) => stage.table === name).length;
    for (let column = 0; column < count; column++) {
      edges.push(edge(at(column, row), column + 1 < count ? at(column + 1, row) : middle));
    }
  });
  nodes.push(box('stage answer', middle, 'Answer', [
    `aggregate risk ${risk(query.aggregate_risk)}`, `aggregate loss ${percent(query.aggregate_loss)}`,
    `smallest block ${query.min_block} subjects`, query.recoding && `recoding ${query.recoding}`,
  ], {}));
  const wide = middle.x + boxWidth + 8, high = tables.length * (boxHeight + rowGap) + 8;
  return [h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Execution chain graph' },
    s('svg', { class: 'graph', viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: 'group', 'aria-label': 'Execution chain graph: stages and the answer' }, edges, nodes)),
  h('p', { class: 'quiet' }, 'Choose a stage to see the ways to de-identify it that were compared.'), details,
  table('Stages', stageColumns(query.stages), query.stages)];
}

const at = (column, row) => ({ x: 8 + column * (boxWidth + gap), y: 8 + row * (boxHeight + rowGap) });

function edge(from, to) {
  const x1 = from.x + boxWidth, y1 = from.y + boxHeight / 2, x2 = to.x - 7, y2 = to.y + boxHeight / 2, half = (x1 + x2) / 2;
  return [s('path', { class: 'edge', d: `M${x1} ${y1} C${half} ${y1} ${half} ${y2} ${x2} ${y2}` }),
    s('path', { class: 'tip', d: `M${x2 + 7} ${y2} l-8 -4 v8 z` })];
}

function box(kind, { x, y }, name, lines, attributes) {
  return s('g', { class: kind, ...attributes }, s('rect', { x, y, width: boxWidth, height: boxHeight, rx: 8 }),
    s('text', { class: 'name', x: x + 10, y: y + 20 }, name),
    lines.filter(Boolean).map((line, i) => [' ', s('text', { x: x + 10, y: y + 40 + 18 * i }, cut(line))]));
}

const cut = (text) => (text.length > 38 ? text.slice(0, 37) + '…' : text);

function stageNode(stage, place, details) {
  const name = `${stage.stage} ${stage.place || ''}`;
  const open = () => showCandidates(stage, details);
  const { local, aggregate } = stage;
  const lines = [stage.table, (stage.qids || []).join(', '), `risk ${risk(stage.risk_before)} → ${risk(stage.risk_after)}`,
    local ? `local: risk ${risk(local.risk.highest)}, loss ${percent(local.loss)}` : `loss ${percent(stage.loss)}`,
    aggregate && `aggregate: risk ${risk(aggregate.risk.highest)}, loss ${percent(aggregate.loss)}`, stage.action && `action: ${stage.action}`];
  return box('stage' + (stage.candidates && stage.candidates.length ? ' risky' : ''), place, name, lines, {
    role: 'button', tabindex: '0', 'aria-controls': 'candidates', onclick: open,
    onkeydown: (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      open();
    },
  });
}

function showCandidates(stage, details) {
  const candidates = stage.candidates || [];
  const measures = Object.entries(stage).filter(([, v]) => nested(v));
  details.replaceChildren(h('h3', {}, `${stage.stage}: ${(stage.qids || []).join(', ')}`),
    h('dl', {}, measures.map(([name, v]) => [h('dt', {}, words(name)), h('dd', {}, value(name, v))])), candidates.length
    ? table(`Candidates of ${stage.stage}`, candidateColumns(candidates), candidates)
    : h('p', {}, stage.action === 'kept' ? 'The chain had been refined for this stage before: nothing was compared.' : 'The risk of this stage is low enough as it is: nothing was compared.'));
}

// nested values are shown on demand, apart from the tables.
const nested = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);

const words = (name) => name.replaceAll('_', ' ');

function value(name, v) {
  if (v === null || v === undefined) return '–';
  if (typeof v === 'boolean') return v ? 'yes' : 'no';
  if (typeof v === 'number') return name.includes('loss') ? percent(v) : name.includes('risk') ? risk(v) : String(Number(v.toPrecision(4)));
  if (Array.isArray(v)) return v.map((item) => (typeof item === 'object' ? JSON.stringify(item) : item)).join(', ');
  if (typeof v === 'object') return Object.entries(v).map(([key, item]) => (nested(item) ? `${words(key)}: ${value(key, item)}` : `${words(key)} ${value(key, item)}`)).join(', ');
  return String(v);
}

// Whatever else a record says of stages and candidates is shown under its name.
const fields = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))];

// figure is a value as a table has it: an export takes a number as it is.
const figure = (name, v) =>
  (typeof v === 'number' ? h('data', { value: v }, value(name, v)) : value(name, v));

const candidateColumns = (candidates) =>
  fields(candidates).map((name) => [words(name), (c) => figure(name, c[name])]);

const stageColumns = (stages) => [
  ['stage', (g) => `${g.stage} ${g.place || ''}`], ['table', (g) => g.table], ['quasi-identifiers', (g) => (g.qids || []).join(', ')], ['condition', (g) => g.condition || ''],
  ...fields(stages).filter((name) => !shown.includes(name) && !stages.some((g) => nested(g[name]))).map((name) => [words(name), (g) => figure(name, g[name])]),
  ['candidates', (g) => String((g.candidates || []).length), 'number'],
];
