// The threads of a deployment.

import {html} from './vendor/lit.js';
import {call, searched} from './api.js';
import {View, action, badge, copyAsCurl, when} from './view.js';

// textOf is the text of a message, whose content is a string or a list of blocks.
export function textOf(message) {
  const content = message?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map(block => typeof block === 'string' ? block : block.text ?? '').join('');
}

class Threads extends View {
  static properties = {deployment: {}, rows: {state: true}, more: {state: true}, status: {state: true}};

  open() { this.read(); }

  get path() { return `/d/${this.deployment}/threads/search`; }

  get body() { return {limit: 50, ...this.status ? {status: this.status} : {}}; }

  async read() {
    await this.attempt(async () => { Object.assign(this, await searched(this.path, this.body, this.count, this.ending.signal)); });
  }

  async begin() {
    const made = await this.act(() => call('POST', `/d/${this.deployment}/threads`, {}));
    if (made) location.hash = `#/deployments/${this.deployment}/threads/${this.done.thread_id}`;
  }

  render() {
    const choose = event => {
      this.note({status: event.target.value, count: 1});
      this.read();
    };
    const to = thread => `#/deployments/${this.deployment}/threads/${thread.thread_id}`;
    const first = thread => textOf(thread.values?.messages?.find(m => m.type === 'human')) || thread.thread_id;
    return html`
      <div class="head"><h1>Threads</h1> <a href="#/deployments/${this.deployment}">deployment</a>
        <label>Status <select @change=${choose}>${['', 'idle', 'busy', 'interrupted', 'error'].map(s => html`<option value=${s} ?selected=${s === (this.status ?? '')}>${s || 'all'}</option>`)}</select></label>
        ${action('New thread', 'editor', () => this.begin())}${copyAsCurl(this.path, 'POST', this.body)}</div>
      ${this.problem()}
      ${this.listed('Threads', [
        ['Begins with', t => html`<a class="clip" dir="auto" href=${to(t)}>${first(t)}</a>`],
        ['Status', t => badge(t.status)],
        ['Messages', t => t.values?.messages?.length ?? 0],
        ['Changed', t => when(t.updated_at)],
      ], this.rows, 'There is no thread yet.')}
      ${this.further(this.more, () => this.read())}`;
  }
}
customElements.define('slipway-threads', Threads);
