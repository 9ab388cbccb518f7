// The difference between two revisions of a deployment: settings with both values, and the names of
// the secrets that changed.

import {html, nothing} from './vendor/lit.js';
import {get, listed} from './api.js';
import {View, copyAsCurl, table} from './view.js';

// shown is a value of a setting as text.
const shown = value => value === null ? html`<span class="hint">not set</span>` : html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`;

// named is a revision as text, for a list to choose from.
const titled = ({created_at: at, status, source_revision_config: config}) =>
  [new Date(at).toLocaleString(), status.replaceAll('_', ' ').toLowerCase(), (config.repo_commit_sha ?? '').slice(0, 9), config.repo_ref ?? config.image_uri ?? ''].filter(part => part).join(' · ');

class Difference extends View {
  static properties = {deployment: {}, revision: {}, from: {state: true}, revisions: {state: true}, difference: {state: true}};

  get base() { return `/v2/deployments/${this.deployment}/revisions`; }

  get path() { return `${this.base}/${this.revision}/difference?from=${this.from}`; }

  // open compares with the revision before, or with another one if there is none before.
  async open() {
    await this.attempt(async () => {
      this.revisions = (await listed(`${this.base}?limit=100`, Infinity, this.ending.signal)).rows;
      const at = this.revisions.findIndex(r => r.id === this.revision);
      this.from = (this.revisions[at + 1] ?? this.revisions.find(r => r.id !== this.revision))?.id;
      await this.read();
    });
  }

  // read shows the newest choice, also if an earlier one is answered later.
  async read() {
    if (!this.from) return;
    const path = this.path, difference = await get(path, this.ending.signal);
    if (path === this.path) this.difference = difference;
  }

  choose(from) {
    this.from = from;
    this.difference = undefined;
    this.attempt(() => this.read());
  }

  render() {
    const others = (this.revisions ?? []).filter(r => r.id !== this.revision), own = this.revisions?.find(r => r.id === this.revision);
    return html`
      <div class="head"><h1>Difference</h1> <a href="#/deployments/${this.deployment}">deployment</a>${this.from ? copyAsCurl(this.path) : nothing}</div>
      ${this.problem()}
      ${this.from ? html`<dl class="facts">
        <dt><label for="from">From</label></dt><dd><select id="from" @change=${event => this.choose(event.target.value)}>${others.map(r => html`<option
          value=${r.id} ?selected=${r.id === this.from}>${titled(r)}</option>`)}</select></dd>
        <dt>To</dt><dd>${own ? titled(own) : html`<code>${this.revision}</code>`}</dd></dl>` : nothing}
      ${this.revisions && !this.from ? html`<p class="hint">The deployment has no other revision.</p>` : this.trouble ? nothing : html`
        <h2>Settings</h2>
        ${table('Settings that changed', [['Setting', s => html`<code>${s.name}</code>`], ['Before', s => shown(s.from)], ['After', s => shown(s.to)]],
          this.difference?.settings, 'No setting changed.')}
        <h2>Secrets</h2>
        ${table('Secrets that changed', [['Name', s => html`<code>${s.name}</code>`], ['Change', s => s.change]], this.difference?.secrets, 'No secret changed.')}`}`;
  }
}
customElements.define('slipway-difference', Difference);
