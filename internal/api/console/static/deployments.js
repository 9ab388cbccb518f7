// The list of deployments, and the page of one deployment.

import {html, nothing} from './vendor/lit.js';
import {call, get, listed} from './api.js';
import {Live, action, badge, copyAsCurl, kindOf, seconds, sure, when} from './view.js';

// Followed is a view that reads again when something happens in the workspace.
class Followed extends Live {
  open() {
    this.refresh();
    const heard = ({detail}) => { if (detail.type !== 'deployment.questions_changed' && this.concerns(detail)) this.refresh(); };
    window.addEventListener('workspace-event', heard, {signal: this.ending.signal});
  }

  concerns() { return true; }
}

class Deployments extends Followed {
  static properties = {rows: {state: true}, more: {state: true}, name: {state: true}};

  async read() {
    const path = '/v2/deployments?limit=100' + (this.name ? `&name_contains=${encodeURIComponent(this.name)}` : '');
    const list = await listed(path, this.count, this.ending.signal);
    // A list has no statuses of revisions. A newest revision that serves is deployed; each other
    // newest revision is read, unless it was read and can change no more.
    const known = new Map((this.rows ?? []).map(row => [row.id, row]));
    this.rows = await Promise.all(list.rows.map(async deployment => {
      const before = known.get(deployment.id);
      const id = deployment.latest_revision_id;
      if (!id) return deployment;
      if (id === deployment.active_revision_id) return {...deployment, revision: {id, status: 'DEPLOYED'}};
      if (before?.revision?.id === id && kindOf(before.revision.status) !== 'busy') return {...deployment, revision: before.revision};
      return {...deployment, revision: await get(`/v2/deployments/${deployment.id}/revisions/${id}`, this.ending.signal)};
    }));
    this.more = list.more;
  }

  render() {
    const search = event => {
      this.note({name: event.target.value, count: 1});
      this.refresh();
    };
    return html`
      <div class="head"><h1>Deployments</h1>
        <label class="search">Name contains <input type="search" .value=${this.name ?? ''} @input=${search}></label>
        ${copyAsCurl('/v2/deployments?limit=100')}</div>
      ${this.problem()}
      ${this.listed('Deployments', [
        ['Name', d => html`<a href="#/deployments/${d.id}">${d.name}</a>`],
        ['Newest revision', ({revision}) => badge(revision?.status)],
        ['Serves', d => badge(d.active_revision_id ? 'active' : '', d.active_revision_id ? 'yes' : 'no')],
        ['Source', d => html`<span class="clip">${d.source_config.repo_url ?? d.source_revision_config.image_uri ?? d.source}</span>`],
        ['Changed', d => when(d.updated_at)],
        ['', d => html`${d.active_revision_id ? html`<a href="#/deployments/${d.id}/threads">talk</a> ` : nothing}${d.latest_revision_id
          ? html`<a href="#/deployments/${d.id}/revisions/${d.latest_revision_id}/logs/build">logs</a>` : nothing}`],
      ], this.rows, this.name ? 'No deployment has such a name.' : html`There is no deployment yet. Run <code>slipway deploy</code> in an agent's directory.`)}
      ${this.further(this.more, () => this.refresh())}`;
  }
}
customElements.define('slipway-deployments', Deployments);

const phases = ['CREATING', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'];

class Deployment extends Followed {
  static properties = {deployment: {}, found: {state: true}, revisions: {state: true}, more: {state: true}, explanations: {state: true}};

  open() {
    super.open();
    this.keepTime(() => this.revisions?.some(r => kindOf(r.status) === 'busy'));
  }

  concerns(event) { return !this.leaving && (event.type === 'watching' || event.data.deployment_id === this.deployment); }

  get base() { return `/v2/deployments/${this.deployment}`; }

  async read() {
    const [found, list] = await Promise.all([
      get(this.base, this.ending.signal), listed(`${this.base}/revisions?limit=20`, this.count, this.ending.signal),
    ]);
    this.found = found;
    this.revisions = list.rows;
    this.more = list.more;
    this.explanations ??= {};
    for (const revision of this.revisions.slice(0, 3)) {
      if (!revision.status.includes('FAILED') || this.explanations[revision.id]) continue;
      const explanation = await get(`${this.base}/revisions/${revision.id}/explanation`, this.ending.signal);
      this.explanations = {...this.explanations, [revision.id]: explanation};
    }
  }

  // change asks first where there is a question, and reads again.
  async change(method, path, question, action, body) {
    if (question && !await sure(question, action)) return;
    await this.act(() => call(method, path, body));
    await this.refresh();
  }

  render() {
    const d = this.found;
    if (!d) return this.trouble ? this.problem() : html`<p class="hint">Loading …</p>`;
    const newest = this.revisions[0];
    return html`
      <div class="head"><h1>${d.name}</h1> ${badge(newest?.status)}
        ${copyAsCurl(this.base)}
        ${d.active_revision_id ? html`<a class="button" href="#/deployments/${d.id}/threads">Threads</a>
          <a class="button" href="#/deployments/${d.id}/assistants">Assistants</a>
          <a class="button" href="#/deployments/${d.id}/metrics">Metrics</a>` : nothing}
        ${action('Delete', 'admin', () => this.erase(), 'danger')}</div>
      ${this.problem()}
      <dl class="facts">
        <dt>Agent server</dt><dd><code>${d.source_config.custom_url ?? 'none'}</code></dd>
        <dt>Source</dt><dd><code>${d.source_config.repo_url ?? d.source_revision_config.image_uri ?? d.source}</code> ${d.source_revision_config.repo_ref ?? ''}</dd>
        <dt>Secrets</dt><dd>${d.secrets.length ? d.secrets.map(s => html`<code>${s.name}</code> `) : 'none'}</dd>
        <dt>Created</dt><dd>${when(d.created_at)}</dd>
        <dt>Id</dt><dd><code>${d.id}</code></dd>
      </dl>
      <h2>Revisions</h2>
      <ol class="revisions">${this.revisions.map(r => this.revision(r))}</ol>
      ${this.further(this.more, () => this.refresh())}`;
  }

  revision(r) {
    const active = r.id === this.found.active_revision_id, running = kindOf(r.status) === 'busy', path = `${this.base}/revisions/${r.id}`;
    const canary = running && r.phase_timestamps.CANARY;
    const sha = r.source_revision_config.repo_commit_sha;
    return html`<li class=${active ? 'active' : ''}>
      <div class="head">${badge(r.status)} ${active ? html`<strong class="mark">serves</strong>` : nothing}
        ${when(r.created_at)} ${sha ? html`<code title=${sha}>${sha.slice(0, 9)}</code>` : nothing}
        <a href="#/deployments/${this.deployment}/revisions/${r.id}/logs/build">build log</a>
        <a href="#/deployments/${this.deployment}/revisions/${r.id}/logs/deploy">agent log</a>
        ${this.revisions.length > 1 ? html`<a href="#/deployments/${this.deployment}/revisions/${r.id}/difference">difference</a>` : nothing}
        ${canary ? action('Promote', 'editor', () => this.change('POST', `${path}/promote`, 'Serve all threads by this revision?', 'Promote')) : nothing}
        ${running ? action('Cancel', 'editor', () => this.change('POST', `${path}/cancel`, 'Stop this rollout?', 'Stop'), 'quiet')
          : html`${action('Redeploy', 'editor', () => this.change('POST', `${path}/redeploy`), 'quiet')}
            ${active || r.status !== 'DEPLOYED' && !r.phase_timestamps.DEPLOYED ? nothing
              : action('Roll back', 'editor', () => this.change('POST', `${path}/rollback`, 'Serve this revision again?', 'Roll back'), 'quiet')}`}</div>
      ${canary ? html`<p>It is a canary: it serves ${this.found.canary_percent} % of the threads until it is promoted.</p>` : nothing}
      ${this.timeline(r)}
      ${r.status_message ? html`<p class="trouble">${r.status_reason ? html`<strong>${r.status_reason}</strong> ` : nothing}${r.status_message}</p>` : nothing}
      ${this.explain(this.explanations?.[r.id])}
    </li>`;
  }

  // explain shows the cause of a failure, the remedy, and the last lines of the log.
  explain(e) {
    if (!e) return nothing;
    return html`${e.remedy ? html`<p><strong>${e.cause}</strong> ${e.remedy}</p>` : nothing}
      ${e.log.length ? html`<pre class="tail" tabindex="0" aria-label="The last lines of the log">${e.log.slice(-12).map(line => line + '\n')}</pre>` : nothing}`;
  }

  // timeline shows how long each phase took.
  timeline(r) {
    const reached = Object.entries(r.phase_timestamps ?? {}).map(([name, at]) => ({name, at: Date.parse(at)}))
      .sort((a, b) => a.at - b.at || phases.indexOf(a.name) - phases.indexOf(b.name));
    const running = kindOf(r.status) === 'busy';
    return html`<ol class="phases">${reached.map((phase, i) => {
      const next = reached[i + 1], last = !next && !running;
      const took = last ? '' : seconds((next?.at ?? Date.now()) - phase.at);
      return html`<li>${phase.name.replaceAll('_', ' ').toLowerCase()} <b>${took}</b></li>`;
    })}</ol>`;
  }

  async erase() {
    if (!await sure(`Delete the deployment ${this.found.name} with its threads?`, 'Delete')) return;
    this.leaving = true; // the events of the deletion are not worth a read
    this.leaving = await this.act(() => call('DELETE', this.base));
    if (this.leaving) location.hash = '#/';
  }
}
customElements.define('slipway-deployment', Deployment);
