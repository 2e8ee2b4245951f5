// Hierarchies as trees.
import { h } from './dom.js';

// treeOf shows the hierarchy of a column.
export const treeOf = (c) => c.hierarchy && [
  h('span', {}, `${c.hierarchy.name} (${c.hierarchy.kind})`),
  c.note && h('div', { class: 'quiet', 'data-csv': '' }, c.note),
  c.tree && h('details', { 'data-csv': '' }, h('summary', {}, `Tree of ${c.hierarchy.name}`),
    h('ul', { class: 'tree' }, branch(c.tree)))];

function branch(node) {
  const children = node.children || [];
  const rest = node.more ? h('li', { class: 'quiet' }, node.more) : null;
  if (!children.length) {
    return h('li', {}, node.label,
      node.more ? h('span', { class: 'quiet' }, ` (${node.more})`) : null);
  }
  return h('li', {}, h('details', { open: node.label === '*' }, h('summary', {}, node.label),
    h('ul', {}, children.map(branch), rest)));
}
