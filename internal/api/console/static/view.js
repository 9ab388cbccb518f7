// The parts that all views share: a base class that loads and follows, and the small parts they
// show.

import {LitElement, html, nothing} from './vendor/lit.js';
import {curl, session} from './api.js';
import {pause} from './turns.js';

// View is a page of the console. It renders into the page itself, so that one style sheet serves
// all views. What it follows ends with it.
export class View extends LitElement {
  createRenderRoot() { return this; }

  connectedCallback() {
    super.connectedCallback();
    this.ending = new AbortController();
    Object.assign(this, history.state);
    this.addEventListener('click', event => { if (event.target.closest('a')) this.note({y: scrollY}); });
    this.open();
  }

  // note keeps what a person has chosen with the page's entry in the history of the browser: the
  // person finds it again, and the same place in the list, when the back button leads here.
  note(values) {
    Object.assign(this, values);
    history.replaceState({...history.state, ...values}, '');
  }

  // updated titles the window by the heading of the page, and goes to the place in the list. A view
  // that was left can be updated once more.
  updated() {
    if (!this.isConnected) return;
    const heading = this.querySelector('h1');
    if (heading) title({page: `${heading.textContent} · Slipway`});
    if (this.y === undefined || !this.rows) return;
    scrollTo(0, this.y);
    this.y = undefined;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.ending.abort();
  }

  open() {}

  // count is how many pages of its list the view reads.
  count = 1;

  // further is a button that reads the list again with one page more, if there are more pages.
  further(more, read) {
    const next = () => {
      this.note({count: this.count + 1});
      return read();
    };
    return more ? html`<p><button class="quiet" @click=${next}>show more</button></p>` : nothing;
  }

  // attempt reads what the view shows, and shows why that failed until a read succeeds.
  async attempt(read) {
    try {
      const found = await read();
      this.trouble = '';
      return found;
    } catch (error) {
      if (!this.ending.signal.aborted) this.trouble = error.message;
    } finally {
      this.requestUpdate();
    }
  }

  // act does what a person asked for, and shows why it failed until the next act. It resolves to
  // whether it succeeded, with what the work resolved to as this.done.
  async act(work) {
    this.failure = '';
    try {
      this.done = await work();
      return true;
    } catch (error) {
      this.failure = error.message;
      return false;
    } finally {
      this.requestUpdate();
    }
  }

  // listed is a table of rows, or nothing if they could not be read: the problem says why.
  listed(caption, columns, rows, empty) { return !rows && this.trouble ? nothing : table(caption, columns, rows, empty); }

  problem() {
    return [...new Set([this.failure, this.trouble])].filter(text => text).map(text => html`<p class="trouble" role="alert">${text}</p>`);
  }
}

const titled = {page: 'Slipway', waiting: 0};

// title changes the title of the window, which counts the threads that wait for a person.
export function title(change) {
  Object.assign(titled, change);
  document.title = (titled.waiting ? `(${titled.waiting}) ` : '') + titled.page;
}

// Live is a view that can read again what it shows. Reads that come close together are one.
export class Live extends View {
  async refresh() {
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    do {
      this.again = false;
      await this.attempt(() => this.read());
    } while (this.again && !this.ending.signal.aborted);
    this.reading = false;
  }

  // keepTime shows the view again each second while something goes on, as it shows for how long.
  async keepTime(goesOn) {
    const {signal} = this.ending;
    while (!signal.aborted) {
      await pause(1000, signal);
      if (goesOn()) this.requestUpdate();
    }
  }
}

const shapes = {good: '●', bad: '✕', busy: '◐', quiet: '○'};

const kinds = {
  DEPLOYED: 'good', READY: 'good', success: 'good', idle: 'quiet', active: 'good',
  error: 'bad', timeout: 'bad', interrupted: 'quiet', CANCELLED: 'quiet', INTERRUPTED: 'quiet', SKIPPED: 'quiet', SUPERSEDED: 'quiet',
  UNUSED: 'quiet', AWAITING_DELETE: 'busy',
};

// kindOf is how a status is shown: good, bad, busy or quiet.
export function kindOf(status) {
  if (!status) return 'quiet';
  return kinds[status] ?? (status.includes('FAILED') ? 'bad' : 'busy');
}

// badge shows a status by a text, a shape and a colour.
export function badge(status, text = status) {
  const kind = kindOf(status);
  return html`<span class="badge ${kind}"><span aria-hidden="true">${shapes[kind]}</span> ${(text ?? 'none').replaceAll('_', ' ').toLowerCase()}</span>`;
}

// reconnecting shows that a stream broke, and why it was refused if that is known.
export const reconnecting = why => html`${badge('error', 'reconnecting')} ${why ? html`<span class="hint">${why}</span>` : nothing}`;

// when shows an instant, with the whole of it as the title.
export function when(text) {
  if (!text) return '';
  const at = new Date(text), today = at.toDateString() === new Date().toDateString();
  const shown = today ? at.toLocaleTimeString() : at.toLocaleString();
  return html`<time datetime=${text} title=${at.toISOString()}>${shown}</time>`;
}

// seconds shows how long something took.
export function seconds(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60000)} min ${Math.round(milliseconds % 60000 / 1000)} s`;
}

// copyAsCurl is a button that copies the command which answers what the view shows.
export function copyAsCurl(path, method = 'GET', body = undefined) {
  const copy = async event => {
    const button = event.currentTarget, text = curl(method, path, body);
    button.dataset.command = text;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'not allowed';
    }
  };
  return html`<button class="quiet copy" title="Set KEY to an API key before you run the command." @click=${copy}>copy as curl</button>`;
}

// sure asks before something that cannot be taken back, and resolves to whether to go on.
export function sure(question, action) {
  const dialog = document.createElement('dialog');
  const text = document.createElement('p'), no = document.createElement('button'), yes = document.createElement('button');
  text.textContent = question;
  no.textContent = 'Cancel';
  no.className = 'quiet';
  yes.textContent = action;
  dialog.setAttribute('aria-label', action);
  dialog.append(text, no, yes);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise(resolve => {
    const end = answer => { dialog.close(); dialog.remove(); resolve(answer); };
    no.onclick = () => end(false);
    yes.onclick = () => end(true);
    dialog.oncancel = () => end(false);
  });
}

const ranks = ['viewer', 'editor', 'admin'];

// refusal is why the role of the session does not allow what needs at least another role; "" if it
// does.
export function refusal(least) {
  if (ranks.indexOf(session.role) >= ranks.indexOf(least)) return '';
  return `Your role is ${session.role}. This needs the role ${least === 'editor' ? 'editor or admin' : least}.`;
}

// action is a button for those whose role allows it; it tells others why it is disabled.
export function action(text, least, run, kind = '') {
  const why = refusal(least);
  return html`<button class=${kind} ?disabled=${why} title=${why || nothing} @click=${run}>${text}</button>`;
}

// table shows rows; each column is a title and a function that shows a row's part.
export function table(caption, columns, rows, empty) {
  if (!rows) return html`<p class="hint">Loading …</p>`;
  if (!rows.length) return html`<p class="hint">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption>${caption}</caption>
    <thead><tr>${columns.map(([title]) => html`<th scope="col">${title}</th>`)}</tr></thead>
    <tbody>${rows.map(row => html`<tr>${columns.map(([, show]) => html`<td>${show(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
