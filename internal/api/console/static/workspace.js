// The lists of a workspace: keys, members, secrets, listeners, webhooks with their deliveries, and
// the audit log.

import {html, nothing} from './vendor/lit.js';
import {call, listed} from './api.js';
import {View, action, badge, copyAsCurl, sure, table, when} from './view.js';

const code = text => text ? html`<code>${text}</code>` : '';

// Each list is its title, its path, its columns and what a row can be made to do.
const lists = {
  keys: {
    title: 'API keys', path: '/v2/api-keys', empty: 'There is no key.',
    columns: [['Name', k => k.name || 'no name'], ['Begins with', k => code(k.prefix)], ['Role', k => k.role], ['Created', k => when(k.created_at)],
      ['Last used', k => when(k.last_used_at)], ['Expires', k => when(k.expires_at)]],
    remove: {action: 'Revoke', question: k => `Revoke the key ${k.prefix}…? Its sessions end, too.`, path: k => `/v2/api-keys/${k.id}`},
  },
  members: {
    title: 'Members', path: '/v2/workspaces/current/members', empty: 'There is no member: requests come with API keys.',
    columns: [['User', m => m.user], ['Issuer', m => m.issuer ?? ''], ['Role', m => m.role], ['Since', m => when(m.created_at)]],
  },
  secrets: {
    title: 'Secrets', path: '/v2/secrets', empty: 'There is no secret of the workspace.',
    columns: [['Name', s => code(s.name)], ['Changed', s => when(s.updated_at)]],
  },
  listeners: {
    title: 'Listeners', path: '/v2/listeners', empty: 'There is no listener.',
    columns: [['Id', l => code(l.id)], ['Compute', l => l.compute_type], ['Status', l => badge(l.online ? 'active' : 'idle', l.online ? 'online' : 'offline')],
      ['Seen', l => when(l.last_seen_at)]],
  },
  webhooks: {
    title: 'Webhooks', path: '/v2/webhooks', empty: 'There is no webhook.',
    columns: [['URL', w => w.url], ['Events', w => w.event_types.join(', ') || 'all'],
      ['Status', w => w.enabled ? badge('active') : badge('error', w.disabled_reason ?? 'disabled')], ['Created', w => when(w.created_at)]],
    deliveries: true,
  },
  audit: {
    title: 'Audit log', path: '/v2/audit-log?limit=100', empty: 'Nothing was changed yet.',
    columns: [['Time', e => when(e.time)], ['Action', e => e.action], ['Resource', e => code(e.resource)], ['Outcome', e => badge(e.outcome === 'refused' ? 'error' : 'success', e.outcome)],
      ['By', e => code(e.key_id ?? e.subject)], ['Detail', e => e.detail ?? '']],
  },
};

class List extends View {
  static properties = {name: {}, rows: {state: true}, more: {state: true}, deliveries: {state: true}};

  open() { this.read(); }

  async read() {
    await this.attempt(async () => {
      Object.assign(this, await listed(lists[this.name].path, this.count, this.ending.signal));
    });
  }

  async erase({action, question, path}, row) {
    if (!await sure(question(row), action)) return;
    await this.act(() => call('DELETE', path(row)));
    await this.read();
  }

  async showDeliveries(webhook, count = 1) {
    const path = `/v2/webhooks/${webhook.id}/deliveries`;
    await this.act(async () => { this.deliveries = {webhook, path, count, ...await listed(path, count, this.ending.signal)}; });
  }

  async replay(delivery) {
    const {webhook, path, count} = this.deliveries;
    if (await this.act(() => call('POST', `${path}/${delivery.id}/replay`))) await this.showDeliveries(webhook, count);
  }

  render() {
    const list = lists[this.name], columns = [...list.columns];
    if (list.remove) columns.push(['', row => action(list.remove.action, 'admin', () => this.erase(list.remove, row), 'danger')]);
    if (list.deliveries) columns.push(['', row => html`<button class="quiet" @click=${() => this.showDeliveries(row)}>deliveries</button>`]);
    return html`
      <div class="head"><h1>${list.title}</h1>${copyAsCurl(list.path)}</div>
      ${this.problem()}
      ${this.listed(list.title, columns, this.rows, list.empty)}
      ${this.further(this.more, () => this.read())}
      ${list.deliveries && this.deliveries ? html`<h2>Deliveries</h2>${table('Deliveries', [
        ['Event', d => d.event_type], ['Status', d => badge(d.status === 'succeeded' ? 'success' : d.status === 'failed' ? 'error' : 'busy', d.status)],
        ['Answer', d => d.response_status ?? ''], ['Failure', d => d.failure ?? ''], ['Attempts', d => d.attempts],
        ['Created', d => when(d.created_at)], ['', d => action('send again', 'editor', () => this.replay(d), 'quiet')],
      ], this.deliveries.rows, 'Nothing was sent yet.')}
      ${this.further(this.deliveries.more, () => this.showDeliveries(this.deliveries.webhook, this.deliveries.count + 1))}` : nothing}`;
  }
}
customElements.define('slipway-list', List);
