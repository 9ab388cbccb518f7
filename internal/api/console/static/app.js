// The console: signs in, routes by the fragment of the address, and follows the workspace's events
// for all views.

import {LitElement, html, keyed, nothing} from './vendor/lit.js';
import {Refused, call, enter, get, keepProof, session} from './api.js';
import {watch} from './events.js';
import {inbox} from './inbox.js';
import {sure, title} from './view.js';
import './assistants.js';
import './deployments.js';
import './difference.js';
import './logs.js';
import './metrics.js';
import './palette.js';
import './threads.js';
import './chat.js';
import './run.js';
import './workspace.js';

const id = '([0-9a-fA-F-]{36})';

// Each route is a pattern of the fragment and what shows it.
const routes = [
  [/^\/?$/, () => html`<slipway-deployments></slipway-deployments>`],
  [RegExp(`^/deployments/${id}$`), d => html`<slipway-deployment .deployment=${d}></slipway-deployment>`],
  [RegExp(`^/deployments/${id}/revisions/${id}/logs/(build|deploy)(?:/(.+))?$`),
    (d, r, kind, line) => html`<slipway-logs .deployment=${d} .revision=${r} .kind=${kind} .line=${line}></slipway-logs>`],
  [RegExp(`^/deployments/${id}/revisions/${id}/difference$`), (d, r) => html`<slipway-difference .deployment=${d} .revision=${r}></slipway-difference>`],
  [RegExp(`^/deployments/${id}/assistants$`), d => html`<slipway-assistants .deployment=${d}></slipway-assistants>`],
  [RegExp(`^/deployments/${id}/metrics$`), d => html`<slipway-metrics .deployment=${d}></slipway-metrics>`],
  [RegExp(`^/deployments/${id}/threads$`), d => html`<slipway-threads .deployment=${d}></slipway-threads>`],
  [RegExp(`^/deployments/${id}/threads/${id}$`), (d, t) => html`<slipway-chat .deployment=${d} .thread=${t}></slipway-chat>`],
  [RegExp(`^/deployments/${id}/threads/${id}/runs/${id}$`), (d, t, r) => html`<slipway-run .deployment=${d} .thread=${t} .run=${r}></slipway-run>`],
  [/^\/inbox$/, () => html`<slipway-inbox></slipway-inbox>`],
  [/^\/(keys|members|secrets|webhooks|audit|listeners)$/, name => html`<slipway-list .name=${name}></slipway-list>`],
];

// refusals say why a sign-in at the issuer has failed.
const refusals = {
  state: 'This sign-in was not begun in this browser, or it took too long. Sign in again.',
  denied: 'The issuer did not sign you in. Try again.',
  member: 'You are not a member of this workspace. Ask an admin of the workspace to add you.',
  several: 'You are a member of several workspaces. Name the one to sign in to.',
  issuer: 'The issuer does not answer. Try again later.',
};

// place is the view that the fragment of the address names. A fragment that is not well encoded
// names itself.
function place() {
  const text = location.hash.slice(1);
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

// absent is what the page says while the server does not answer.
const absent = 'The server does not answer. The console tries again until it does.';

// viewOf names the view of a place: another place is another view, but for a line within the same
// log.
const viewOf = at => at.replace(/(\/logs\/\w+)\/.*/, '$1');

class Console extends LitElement {
  static properties = {at: {state: true}, who: {state: true}, away: {state: true}, limit: {state: true}, trouble: {state: true}, issuer: {state: true}, several: {state: true}, waiting: {state: true}};

  createRenderRoot() { return this; }

  connectedCallback() {
    super.connectedCallback();
    window.addEventListener('hashchange', () => this.move());
    window.addEventListener('signed-out', () => this.forget('The session has ended. Sign in again.'));
    window.addEventListener('limited', ({detail}) => { this.limit = detail; });
    // A sign-in or sign-out in one page counts for all pages of this browser.
    window.addEventListener('storage', ({key}) => { if (key === 'proof') location.reload(); });
    inbox.addEventListener('change', () => {
      this.waiting = inbox.rows?.length ?? 0;
      title({waiting: this.waiting});
    });
    document.documentElement.dataset.theme = localStorage.getItem('theme') ?? '';
    this.go();
  }

  // move goes to another place. The focus is on the content of another view: there a person who
  // uses the keyboard or a screen reader goes on.
  async move() {
    const before = viewOf(this.at);
    this.go();
    await this.updateComplete;
    if (viewOf(this.at) !== before) this.querySelector('main').focus({preventScroll: true});
  }

  async go() {
    const code = location.hash.match(/^#\/sign-in\/(\w+)$/)?.[1];
    const refusal = location.hash.match(/^#\/sign-in\/refused\/(\w+)$/)?.[1];
    if (code || refusal) history.replaceState(null, '', '#/');
    this.at = place();
    title({page: 'Slipway'});
    if (this.who === undefined) await this.look();
    if (code && await this.mayReplace()) await this.signIn(code);
    if (refusal) {
      this.trouble = refusals[refusal] ?? refusals.denied;
      this.several = refusal === 'several';
    }
    if (!this.who) await this.ask();
  }

  // ask finds out whether people sign in at an issuer, and at which.
  async ask() {
    try {
      this.issuer ??= (await get('/sign-in')).issuer;
    } catch (error) {
      this.trouble = error.message;
    }
  }

  // visit goes to the issuer, and notes the place to which the person comes back.
  visit(event) {
    event.preventDefault();
    const workspace = new FormData(event.target).get('workspace')?.trim();
    sessionStorage.setItem('place', location.hash);
    location.assign('/sign-in/browser' + (workspace ? '?' + new URLSearchParams({workspace}) : ''));
  }

  // mayReplace asks before a link ends one session for another: who made the link is not known.
  mayReplace() {
    return !this.who || sure(`You are signed in to the workspace ${this.who.name} as ${this.who.role}. Sign in by this link instead?`, 'Sign in by the link');
  }

  // look finds out who is signed in. It tries again until the server answers.
  async look() {
    if (!session.kept) {
      this.who = null;
      return;
    }
    try {
      this.who = await get('/v2/workspaces/current');
      session.role = this.who.role;
      this.away = '';
      this.trouble = '';
      this.watch();
    } catch (error) {
      if (!(error instanceof Refused) || error.status >= 500 || error.status === 429) {
        this.away = absent;
        setTimeout(() => this.look(), 2000);
        return;
      }
      this.who = null;
      if (error.status !== 401) this.trouble = error.message;
    }
  }

  async signIn(code) {
    try {
      await enter(code);
      this.forgetEvents();
      await this.look();
      const before = sessionStorage.getItem('place');
      sessionStorage.removeItem('place');
      if (before) location.hash = before;
    } catch (error) {
      this.trouble = error.message;
    }
  }

  async signOut() {
    try {
      await call('DELETE', '/console/session');
      this.forget();
    } catch (error) {
      this.trouble = `You are still signed in: ${error.message}`;
    }
  }

  // forget shows the door, as there is no session any longer, and why.
  forget(why = '') {
    keepProof();
    this.trouble = why;
    this.forgetEvents();
    this.who = null;
    this.ask();
  }

  forgetEvents() {
    this.events?.abort();
    inbox.forget();
  }

  // watch follows the workspace's events from now on and passes each one to the views. The views
  // read what they show once more when the stream has begun, as they may have missed something
  // before.
  watch() {
    this.events?.abort();
    this.events = new AbortController();
    const tell = event => {
      inbox.note(event);
      window.dispatchEvent(new CustomEvent('workspace-event', {detail: event}));
    };
    watch(this.who.id, {
      signal: this.events.signal, take: tell,
      state: (state, why) => {
        this.away = state === 'away' ? why ?? absent : '';
        if (!this.away) tell({type: 'watching', data: {}});
      },
    }).catch(error => { this.trouble = `The lists do not follow what happens: ${error.message}`; });
  }

  theme() {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const root = document.documentElement;
    root.dataset.theme = (root.dataset.theme || (dark ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark';
    localStorage.setItem('theme', root.dataset.theme);
  }

  render() {
    if (this.who === undefined) return html`<div role="status">${this.absence()}</div><main><p class="hint">Loading …</p></main>`;
    if (!this.who) return this.door();
    const links = [['/', 'Deployments'], ['/inbox', this.waiting ? `Inbox (${this.waiting})` : 'Inbox'], ['/keys', 'Keys'], ['/members', 'Members'], ['/secrets', 'Secrets'], ['/listeners', 'Listeners'],
      ['/webhooks', 'Webhooks'], ['/audit', 'Audit']];
    const here = this.at || '/';
    const current = path => path === '/' ? here === '/' || here.startsWith('/deployments') : here.startsWith(path);
    return html`
      <a class="skip" href="#main" @click=${event => { event.preventDefault(); this.querySelector('main').focus(); }}>Skip to the content</a>
      <header>
        <a class="brand" href="#/"><img src="icon.svg" alt="" width="24" height="24"> Slipway</a>
        <nav aria-label="Workspace">${links.map(([path, text]) => html`<a href="#${path}" aria-current=${current(path) ? 'page' : nothing}>${text}</a>`)}</nav>
        <span class="who" title="The workspace, and your role in it">${this.who.name} · ${this.who.role}</span>
        <slipway-palette .pages=${links} .commands=${[['Switch between light and dark', () => this.theme()], ['Sign out', () => this.signOut()]]}></slipway-palette>
        <button class="quiet" @click=${this.theme} aria-label="Switch between light and dark">◑</button>
        <button class="quiet" @click=${this.signOut}>Sign out</button>
      </header>
      <div role="status">${this.absence()}</div>
      ${this.trouble ? html`<p class="trouble banner" role="alert">${this.trouble} <button class="quiet" @click=${() => { this.trouble = ''; this.watch(); }}>Try again</button></p>` : nothing}
      <main id="main" tabindex="-1">${this.view(here)}</main>`;
  }

  // absence says why what is read does not come.
  absence() {
    if (this.away) return html`<p class="away">${this.away}</p>`;
    return this.limit ? html`<p class="away">${this.limit} The console tries again until it is answered.</p>` : nothing;
  }

  view(here) {
    for (const [pattern, show] of routes) {
      const found = here.match(pattern);
      if (found) return keyed(viewOf(here), show(...found.slice(1)));
    }
    return html`<h1>Not found</h1><p>There is no page at ${here}. <a href="#/">All deployments</a></p>`;
  }

  door() {
    const submit = event => {
      event.preventDefault();
      this.signIn(new FormData(event.target).get('code').trim());
    };
    return html`<main class="door">
      <h1><img src="icon.svg" alt="" width="32" height="32"> Slipway</h1>
      ${this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing}
      ${this.issuer ? html`<form @submit=${event => this.visit(event)}>
        ${this.several ? html`<label>Workspace <input name="workspace" required pattern="\\s*[\\w.\\-]+\\s*" autocomplete="off" spellcheck="false"
          title="The name or the id of the workspace. It has letters, digits, dots, dashes and underscores only."></label>` : nothing}
        <button>Sign in with ${new URL(this.issuer.url).host}</button>
      </form>` : nothing}
      <p>${this.issuer ? 'Or run' : 'Run'} this command where your API key is. It opens this page and signs you in.</p>
      <pre><code>slipway open</code></pre>
      <form @submit=${submit}>
        <label>Or enter the code that the command prints <input name="code" required autocomplete="off" spellcheck="false"></label>
        <button>Sign in</button>
      </form>
    </main>`;
  }
}
customElements.define('slipway-console', Console);
