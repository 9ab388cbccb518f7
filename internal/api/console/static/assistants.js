// The assistants of a deployment: graphs with their settings, and the versions of these.

import {html, nothing} from './vendor/lit.js';
import {call} from './api.js';
import {View, action, copyAsCurl, sure, table, when} from './view.js';

// settings are what an assistant gives its graph, as JSON.
function settings({config, context}) {
  const given = {...Object.keys(config ?? {}).length ? {config} : {}, ...Object.keys(context ?? {}).length ? {context} : {}};
  return Object.keys(given).length ? html`<pre>${JSON.stringify(given, null, 2)}</pre>` : html`<span class="hint">none</span>`;
}

class Assistants extends View {
  static properties = {deployment: {}, rows: {state: true}, versions: {state: true}};

  get base() { return `/d/${this.deployment}/assistants`; }

  open() { this.read(); }

  async read() {
    await this.attempt(async () => { this.rows = await call('POST', `${this.base}/search`, {limit: 100}, this.ending.signal); });
  }

  async show(of) {
    await this.act(async () => { this.versions = {of, rows: await call('POST', `${this.base}/${of.assistant_id}/versions`, {limit: 100}, this.ending.signal)}; });
  }

  // choose makes a version the one that runs use.
  async choose({version}) {
    const {of} = this.versions;
    if (!await this.act(() => call('POST', `${this.base}/${of.assistant_id}/latest`, {version}))) return;
    await this.read();
    await this.show(this.rows.find(a => a.assistant_id === of.assistant_id));
  }

  async erase(a) {
    if (!await sure(`Delete the assistant ${a.name}? Runs can no longer name it.`, 'Delete')) return;
    if (await this.act(() => call('DELETE', `${this.base}/${a.assistant_id}`))) this.versions = undefined;
    await this.read();
  }

  render() {
    const isMade = a => a.metadata?.created_by !== 'system'; // each graph has one, which stays
    return html`
      <div class="head"><h1>Assistants</h1> <a href="#/deployments/${this.deployment}">deployment</a>${copyAsCurl(`${this.base}/search`, 'POST', {limit: 100})}</div>
      ${this.problem()}
      ${this.listed('Assistants', [
        ['Name', a => a.name], ['Graph', a => html`<code>${a.graph_id}</code>`], ['Settings', settings], ['Version', a => a.version], ['Changed', a => when(a.updated_at)],
        ['', a => html`<button class="quiet" @click=${() => this.show(a)}>versions</button> ${isMade(a) ? action('Delete', 'editor', () => this.erase(a), 'danger') : nothing}`],
      ], this.rows, 'There is no assistant yet.')}
      ${this.versions ? html`<h2>Versions of ${this.versions.of.name}</h2>${table('Versions', [
        ['Version', v => v.version], ['Settings', settings], ['Created', v => when(v.created_at)],
        ['', v => v.version === this.versions.of.version ? html`<strong class="mark">in use</strong>` : action('Use', 'editor', () => this.choose(v), 'quiet')],
      ], this.versions.rows, 'There is no version.')}` : nothing}`;
  }
}
customElements.define('slipway-assistants', Assistants);
