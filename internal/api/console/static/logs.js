// The log of a revision's build or agent: follows, pauses when one scrolls up, filters, and shows
// only the lines that are in view, so that a log of any length scrolls.

import {html, nothing} from './vendor/lit.js';
import {follow} from './api.js';
import {View, badge, copyAsCurl, reconnecting} from './view.js';

const height = 20; // of a line, in pixels; console.css has the same

class Logs extends View {
  static properties = {deployment: {}, revision: {}, kind: {}, line: {}, filter: {state: true}, status: {state: true}, away: {state: true}, top: {state: true}, fresh: {state: true}};

  get path() { return `/v2/deployments/${this.deployment}/revisions/${this.revision}/logs?type=${this.kind}`; }

  open() {
    this.lines = [];
    this.filter = '';
    this.top = 0;
    this.fresh = 0;
    this.following = !this.line;
    this.attempt(() => follow(this.path, {
      signal: this.ending.signal,
      take: event => {
        if (event.type === 'end') {
          this.status = event.data.status;
          return false;
        }
        this.lines.push(event.data);
        if (event.data.id === this.sought) this.target = this.lines.length - 1;
        if (!this.following) this.fresh++;
        this.paint();
      },
      state: (state, why) => { this.away = state === 'away' && {why}; },
    }));
  }

  // paint shows what arrived, once for each frame of the screen.
  paint() {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(async () => {
      this.painting = false;
      this.requestUpdate();
      await this.updateComplete;
      const box = this.querySelector('.log');
      if (box && this.following) box.scrollTop = box.scrollHeight;
      if (box && this.target !== undefined) this.showLine(box);
    });
  }

  // willUpdate seeks the line that the address names, which may arrive later.
  willUpdate(changed) {
    if (!changed.has('line') || !this.line) return;
    this.sought = decodeURIComponent(this.line);
    const at = this.lines.findIndex(line => line.id === this.sought);
    if (at >= 0) this.target = at;
    this.following = false;
    this.paint();
  }

  showLine(box) {
    box.scrollTop = this.target * height - box.clientHeight / 2;
    this.marked = this.sought;
    this.sought = this.target = undefined;
    this.requestUpdate();
  }

  // scrolled stops following when a person scrolls up. The page itself scrolls down only, and more
  // lines may have come until it is told so.
  scrolled(event) {
    const box = event.target, up = box.scrollTop < this.top;
    this.top = box.scrollTop;
    this.following = this.following && !up || box.scrollHeight - box.scrollTop - box.clientHeight < height;
    if (this.following) this.fresh = 0;
  }

  // toEnd goes on following.
  toEnd() {
    this.following = true;
    this.fresh = 0;
    this.paint();
  }

  save() {
    const text = this.lines.map(line => `${line.timestamp} ${line.level} ${line.message}\n`).join('');
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], {type: 'text/plain'}));
    link.download = `${this.revision}-${this.kind}.log`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  render() {
    const wanted = (this.filter ?? '').toLowerCase();
    const shown = wanted ? this.lines.filter(line => line.message.toLowerCase().includes(wanted)) : this.lines;
    const first = Math.max(0, Math.floor(this.top / height) - 20), some = shown.slice(first, first + 120);
    const to = kind => `#/deployments/${this.deployment}/revisions/${this.revision}/logs/${kind}`;
    return html`
      <div class="head"><h1>Log</h1> ${this.status ? badge(this.status) : this.away ? reconnecting(this.away.why) : badge('busy', 'live')}
        <a href="#/deployments/${this.deployment}">deployment</a>
        <a href=${to('build')} aria-current=${this.kind === 'build' ? 'page' : nothing}>build</a>
        <a href=${to('deploy')} aria-current=${this.kind === 'deploy' ? 'page' : nothing}>agent</a>
        <label class="search">Filter <input type="search" @input=${event => { this.filter = event.target.value; this.top = 0; }}></label>
        <button class="quiet" @click=${this.save}>Download</button>${copyAsCurl(this.path)}</div>
      ${this.problem()}
      <div class="log" role="log" aria-live="off" tabindex="0" aria-label="The lines of the log" @scroll=${this.scrolled}>
        <svg class="room" width="1" height=${Math.min(shown.length * height, 16000000)} aria-hidden="true"></svg>
        <svg class="above" width="1" height=${first * height} aria-hidden="true"></svg>
        ${some.map(line => html`<div class="line ${line.level?.toLowerCase()} ${line.id === this.marked ? 'marked' : ''}"><a
          href="${to(this.kind)}/${encodeURIComponent(line.id)}" aria-label="Link to this line">${line.timestamp.slice(11, 23)}</a> ${line.message}</div>`)}
      </div>
      <p class="hint" role="status">${shown.length} lines ${this.fresh ? html`<button @click=${this.toEnd}>${this.fresh} new lines ↓</button>` : nothing}</p>`;
  }
}
customElements.define('slipway-logs', Logs);
