// The page of a run: why it ended as it did, and when its parts were done.

import {html, nothing} from './vendor/lit.js';
import {call, follow, get} from './api.js';
import './graph.js';
import {Live, action, badge, copyAsCurl, seconds, table, when} from './view.js';

// parts are the parts of a run, each from when the part before had ended. A first output does not
// end the part in which it is.
function parts(e) {
  const list = [], last = Date.parse(e.ended_at ?? new Date().toISOString());
  let since = Date.parse(e.created_at);
  const add = (what, at, goesOn = false) => {
    list.push({what, from: since, to: at});
    if (!goesOn) since = at;
  };
  if (!e.started_at) return [{what: e.ended_at ? 'never began' : 'waits', from: since, to: last}];
  for (const moment of e.timeline) {
    const at = Date.parse(moment.at);
    switch (moment.kind) {
      case 'attempt': add(moment.attempt === 1 ? 'waits for a worker' : `until attempt ${moment.attempt} begins`, at); break;
      case 'output': add('until the first output', at, true); break;
      case 'step': add(moment.nodes.join(', '), at); break;
      case 'pause': add('until it pauses for a person', at); break;
      case 'failure': add('until it fails', at); break;
    }
  }
  if (!e.ended_at) add('goes on', last);
  else if (e.status === 'interrupted') add('until it was interrupted', last);
  return list;
}

// mostNodes is how large a graph may be that is drawn: the layout of a larger graph could hold up
// the page, and nobody could read it.
const mostNodes = 200;

// nodeOf is the node that wrote a part of a message, by its metadata: the name of the member begins
// with the name of the framework.
const nodeOf = metadata => Object.entries(metadata ?? {}).find(([name]) => name.endsWith('graph_node'))?.[1];

class Run extends Live {
  static properties = {deployment: {}, thread: {}, run: {}, found: {state: true}, asked: {state: true}, graph: {state: true}, active: {state: true}};

  get base() { return `/d/${this.deployment}/threads/${this.thread}`; }

  get path() { return `${this.base}/runs/${this.run}`; }

  async open() {
    this.active = [];
    await this.refresh();
    this.draw();
    this.keepTime(() => this.found && !this.found.ended_at);
    if (!this.found || this.found.ended_at) return;
    await this.attempt(() => follow(`${this.path}/stream?stream_mode=messages-tuple&stream_mode=updates`, {
      signal: this.ending.signal, take: event => this.hear(event), goesOn: async () => {
        await this.refresh();
        return !this.found.ended_at;
      },
    }));
  }

  // draw reads the graph. A page without a drawing is a whole page: the agent may be unable to
  // describe its graph now.
  async draw() {
    if (!this.asked) return;
    this.graph = await get(`/d/${this.deployment}/assistants/${this.asked.assistant_id}/graph`, this.ending.signal).catch(() => null);
  }

  // hear notes which nodes are at work, and reads again the parts that events change: all but the
  // parts of a message behind the first.
  hear(event) {
    const [type] = event.type.split('|');
    const node = type === 'messages' ? nodeOf(event.data[1]) : undefined;
    if (node) this.active = [node];
    if (type === 'updates') this.active = Object.keys(event.data);
    if (event.type !== 'messages' || this.found?.timeline.at(-1)?.kind !== 'output') this.refresh();
  }

  async read() {
    this.asked ??= await get(this.path, this.ending.signal);
    this.found = await get(`${this.path}/explanation`, this.ending.signal);
  }

  async stop() { await this.act(() => call('POST', `${this.path}/cancel?action=interrupt`, {})); }

  render() {
    const e = this.found;
    if (!e) return this.trouble ? this.problem() : html`<p class="hint">Loading …</p>`;
    const all = parts(e), begin = Date.parse(e.created_at), whole = Math.max(1, all.at(-1).to - begin);
    return html`
      <div class="head"><h1>Run</h1> ${badge(e.status)}
        <a href="#/deployments/${this.deployment}/threads/${this.thread}">thread</a>
        ${e.ended_at ? nothing : action('Stop', 'editor', () => this.stop(), 'danger')}${copyAsCurl(`${this.path}/explanation`)}</div>
      ${this.problem()}
      ${e.cause ? html`<p class="trouble"><strong>${e.cause}</strong> ${e.remedy ?? ''}</p>` : nothing}
      ${e.evidence.length ? html`<pre class="tail" tabindex="0" aria-label="The lines that show the cause">${e.evidence.map(line => line + '\n')}</pre>` : nothing}
      <dl class="facts">
        <dt>Strategy</dt><dd>${this.asked.multitask_strategy}</dd>
        <dt>Created</dt><dd>${when(e.created_at)}</dd>
        <dt>Took</dt><dd>${e.ended_at ? seconds(Date.parse(e.ended_at) - begin) : 'it goes on'}</dd>
        <dt>Id</dt><dd><code>${e.run_id}</code></dd>
      </dl>
      ${this.graph?.nodes.length && this.graph.nodes.length <= mostNodes ? html`<h2>Graph</h2><div class="scroll" tabindex="0" role="region" aria-label="Graph"><slipway-graph
        .graph=${this.graph} .active=${e.ended_at ? [] : this.active}></slipway-graph></div>` : nothing}
      <h2>Timeline</h2>
      ${table('Timeline', [
        ['Part', p => p.what],
        ['Began after', p => seconds(p.from - begin)],
        ['Took', p => seconds(p.to - p.from)],
        ['', p => html`<svg class="span" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true"><rect
          x=${Math.min(996, (p.from - begin) / whole * 1000)} width=${Math.max(4, (p.to - p.from) / whole * 1000)} height="10"></rect></svg>`],
      ], all, '')}
      ${e.has_more ? html`<p class="hint">The run has more parts than are shown.</p>` : nothing}
      <details><summary>Input</summary><pre>${JSON.stringify(this.asked.kwargs.command ?? this.asked.kwargs.input, null, 2)}</pre></details>`;
  }
}
customElements.define('slipway-run', Run);
