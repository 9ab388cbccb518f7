// A drawing of a graph, with the nodes that are at work. The layout is layered: a node is below all
// nodes that lead to it, except along edges that lead back.

import {LitElement, html, nothing} from './vendor/lit.js';

const height = 30, between = 26, gap = 44, letter = 8.5, back = 24;

// backward finds the edges that lead back to a node on the way to them.
function backward(nodes, edges) {
  const found = new Set(), state = new Map();
  const visit = id => {
    state.set(id, 'open');
    for (const edge of edges.filter(e => e.source === id)) {
      if (state.get(edge.target) === 'open') found.add(edge);
      else if (!state.has(edge.target)) visit(edge.target);
    }
    state.set(id, 'done');
  };
  const entries = nodes.filter(n => !edges.some(e => e.target === n.id));
  for (const node of [...entries, ...nodes]) if (!state.has(node.id)) visit(node.id);
  return found;
}

// layers puts each node one layer below the lowest node that leads to it.
function layers(nodes, edges) {
  const depth = new Map(nodes.map(n => [n.id, 0]));
  for (let changed = true; changed;) {
    changed = false;
    for (const {source, target} of edges) {
      if (depth.get(target) > depth.get(source)) continue;
      depth.set(target, depth.get(source) + 1);
      changed = true;
    }
  }
  return depth;
}

// layout returns the boxes of the nodes and the paths of the edges.
export function layout(graph) {
  const nodes = graph.nodes.map(n => ({...n, id: String(n.id)})), known = new Set(nodes.map(n => n.id));
  const edges = graph.edges.map(e => ({...e, source: String(e.source), target: String(e.target)})).filter(e => known.has(e.source) && known.has(e.target));
  const backwards = backward(nodes, edges), forward = edges.filter(e => !backwards.has(e)), depth = layers(nodes, forward);
  const rows = [], boxes = new Map();
  for (const {id} of nodes) (rows[depth.get(id)] ??= []).push(id);
  const widths = rows.map(row => row.reduce((sum, id) => sum + id.length * letter + 24 + between, -between));
  const widest = Math.max(...widths), middle = id => boxes.get(id).x + boxes.get(id).width / 2;
  rows.forEach((row, at) => {
    const above = id => {
      const xs = forward.filter(e => e.target === id && boxes.has(e.source)).map(e => middle(e.source));
      return xs.length ? xs.reduce((a, b) => a + b) / xs.length : 0;
    };
    const leadsBack = id => edges.some(e => e.source === id && backwards.has(e)); // such an edge is at the right
    let x = (widest - widths[at]) / 2;
    for (const id of row.toSorted((a, b) => leadsBack(a) - leadsBack(b) || above(a) - above(b))) {
      const width = id.length * letter + 24;
      boxes.set(id, {x, y: at * (height + gap), width});
      x += width + between;
    }
  });
  const lines = edges.map(edge => {
    const from = boxes.get(edge.source), to = boxes.get(edge.target), x1 = middle(edge.source), x2 = middle(edge.target);
    if (!backwards.has(edge)) {
      const y1 = from.y + height, bend = (to.y - y1) / 2;
      return {...edge, path: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${to.y - bend} ${x2} ${to.y - 5}`};
    }
    const y1 = from.y + height / 2, y2 = to.y + height / 2, side = Math.max(from.x + from.width, to.x + to.width) + back;
    return {...edge, path: `M${from.x + from.width} ${y1}C${side} ${y1} ${side} ${y2} ${to.x + to.width + 5} ${y2}`};
  });
  return {boxes, lines, width: widest + (backwards.size ? 2 * back : 0), height: rows.length * (height + gap) - gap};
}

class Graph extends LitElement {
  // graph is the answer of the interface; active are the names of the nodes at work.
  static properties = {graph: {}, active: {}};

  createRenderRoot() { return this; }

  willUpdate(changed) { if (changed.has('graph')) this.drawing = layout(this.graph); }

  // Each part is an svg of its own: the elements of a template would otherwise be those of HTML.
  render() {
    const {boxes, lines, width, height: tall} = this.drawing;
    const at = [...boxes.keys()].filter(id => this.active.includes(id));
    const arrow = 'M0 0L8 4L0 8z';
    return html`<figure class="graph">
      <svg viewBox="-4 -4 ${width + 8} ${tall + 8}" width=${width + 8} role="img" aria-label="The graph has the nodes ${[...boxes.keys()].join(', ')}.">
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d=${arrow}></path></marker></defs>
        ${lines.map(line => html`<svg class="edge" overflow="visible"><path d=${line.path} stroke-dasharray=${line.conditional ? '4 4' : nothing} marker-end="url(#arrow)"></path></svg>`)}
        ${[...boxes].map(([id, box]) => html`<svg class="node ${at.includes(id) ? 'active' : ''}" x=${box.x} y=${box.y} width=${box.width} height=${height} overflow="visible">
          <rect width=${box.width} height=${height} rx="8"></rect><text x=${box.width / 2} y=${height / 2}>${id}</text></svg>`)}
      </svg>
      <figcaption role="status">${at.length ? `At work: ${at.join(', ')}` : ''}</figcaption>
    </figure>`;
  }
}
customElements.define('slipway-graph', Graph);
