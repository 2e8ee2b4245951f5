// Charts over time, as SVG, each with its figures as a table.
import { h, s, percent, moment, number, cell, table } from './dom.js';

const verdicts = ['released', 'passed', 'refused', 'failed'];
const width = 900, height = 220, left = 56, bottom = 24, top = 10;

function frame(label, most, show, buckets, marks) {
  const y = (v) => height - bottom - (v / most) * (height - bottom - top);
  const step = (width - left) / buckets.length;
  const lines = [0, most / 2, most].map((v) => [
    s('line', { class: 'axis', x1: left, x2: width, y1: y(v), y2: y(v) }),
    s('text', { class: 'quiet', x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, show(v)),
  ]);
  const times = [0, 0.25, 0.5, 0.75].map((part) => {
    const i = Math.floor(part * buckets.length);
    return s('text', { class: 'quiet', x: left + i * step, y: height - 6 }, new Date(buckets[i].time).toLocaleString([], { dateStyle: 'short', timeStyle: 'short' }));
  });
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, s('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, lines, times, marks(y, step)));
}

export function verdictChart(buckets) {
  const highest = Math.max(4, ...buckets.map((b) => verdicts.reduce((sum, v) => sum + b[v], 0)));
  const most = 2 * Math.ceil(highest / 2); // so that its half is a number of statements, too
  const chart = frame('Statements by verdict over time; the figures are in the table below', most, number, buckets, (y, step) =>
    buckets.map((b, i) => {
      let sum = 0;
      return verdicts.filter((v) => b[v] > 0).map((v) => {
        const from = sum;
        sum += b[v];
        return s('rect', { class: 'bar ' + v, x: left + i * step + 1, width: Math.max(1, step - 2), y: y(sum), height: y(from) - y(sum) });
      });
    }));
  return [chart, h('p', { class: 'legend' }, verdicts.map((v) => h('span', { class: 'verdict ' + v }, v))), figures(buckets)];
}

export function lossChart(buckets) {
  const curve = (key, y, step) => {
    const points = buckets.map((b, i) => [left + (i + 0.5) * step, b[key]]).filter(([, v]) => v !== null);
    return [s('polyline', { class: 'curve ' + key.split('_')[1], points: points.map(([x, v]) => `${x},${y(v)}`).join(' ') }),
      points.map(([x, v]) => s('circle', { class: 'dot ' + key.split('_')[1], cx: x, cy: y(v), r: 3 }))];
  };
  const most = Math.max(0.1, ...buckets.flatMap((b) => [b.mean_loss || 0, b.max_risk || 0]));
  return [frame('Mean information loss and highest risk of released statements over time; the figures are in the table above', most, percent, buckets,
    (y, step) => [curve('mean_loss', y, step), curve('max_risk', y, step)]),
  h('p', { class: 'legend' }, h('span', {}, h('span', { class: 'key' }), 'mean information loss'), h('span', {}, h('span', { class: 'key risk' }), 'highest re-identification risk'))];
}

function figures(buckets) {
  const rows = buckets.filter((b) => verdicts.some((v) => b[v] > 0));
  return h('details', {}, h('summary', {}, 'Figures'), table('Statements over time', [
    ['from', (b) => moment(b.time)],
    ...verdicts.map((v) => [v, (b) => cell.number(b[v]), 'number']),
    ['mean loss', (b) => cell.percent(b.mean_loss), 'number'],
    ['highest risk', (b) => cell.risk(b.max_risk), 'number'],
  ], rows));
}
