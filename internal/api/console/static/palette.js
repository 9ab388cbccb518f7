// The command palette: finds a page, a deployment or a command by a part of its name.

import {LitElement, html, nothing} from './vendor/lit.js';
import {get} from './api.js';

class Palette extends LitElement {
  // pages are pairs of a path and a text, commands pairs of a text and a function.
  static properties = {pages: {}, commands: {}, text: {state: true}, deployments: {state: true}, chosen: {state: true}, trouble: {state: true}};

  createRenderRoot() { return this; }

  connectedCallback() {
    super.connectedCallback();
    this.ending = new AbortController();
    this.deployments = [];
    window.addEventListener('keydown', event => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      this.show();
    }, {signal: this.ending.signal});
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.ending.abort();
  }

  get dialog() { return this.querySelector('dialog'); }

  // show opens the palette, with all that there is.
  show() {
    if (this.dialog.open) return;
    this.find('');
    this.dialog.showModal();
  }

  // find looks for deployments by the first word of a text: the last answer for the newest text
  // counts. An entry that the person has moved to stays the chosen one when the answer adds others
  // before it.
  async find(text) {
    this.text = text;
    this.chosen = 0;
    const [name] = text.trim().split(/\s+/);
    try {
      const {resources} = await get(`/v2/deployments?limit=20&name_contains=${encodeURIComponent(name)}`, this.ending.signal);
      if (this.text !== text) return;
      const moved = this.chosen > 0 ? this.found()[this.chosen] : undefined;
      this.deployments = resources;
      this.chosen = Math.max(0, this.found().findIndex(({text, kind}) => text === moved?.text && kind === moved.kind));
      this.trouble = '';
    } catch (error) {
      if (!this.ending.signal.aborted) this.trouble = error.message;
    }
  }

  // found are the entries whose texts have all words.
  found() {
    const words = (this.text ?? '').toLowerCase().split(/\s+/).filter(word => word);
    const to = (text, kind, path) => ({text, kind, run: () => { location.hash = `#${path}`; }});
    return [
      ...this.pages.map(([path, text]) => to(text, 'page', path)),
      ...this.deployments.flatMap(({id, name}) => ['', 'threads', 'assistants', 'metrics'].map(part => to(`${name} ${part}`.trim(), 'deployment', `/deployments/${id}/${part}`.replace(/\/$/, '')))),
      ...this.commands.map(([text, run]) => ({text, run, kind: 'command'})),
    ].filter(({text}) => words.every(word => text.toLowerCase().includes(word)));
  }

  run(entry) {
    if (!entry) return;
    this.dialog.close();
    entry.run();
  }

  pressed(event, found) {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step && found.length) this.chosen = (this.chosen + step + found.length) % found.length;
    else if (event.key === 'Enter') this.run(found[this.chosen]);
    else return;
    event.preventDefault();
  }

  updated() { this.querySelector('[aria-selected=true]')?.scrollIntoView({block: 'nearest'}); }

  render() {
    const found = this.found();
    return html`
      <button class="quiet" aria-keyshortcuts="Control+K" title="Control+K" @click=${this.show}>Go to …</button>
      <dialog class="palette" aria-label="Go to">
        <input role="combobox" aria-label="Page, deployment or command" aria-expanded="true" aria-controls="palette-found" autocomplete="off" spellcheck="false"
          aria-activedescendant=${found.length ? `palette-${this.chosen}` : nothing} .value=${this.text ?? ''}
          @input=${event => this.find(event.target.value)} @keydown=${event => this.pressed(event, found)}>
        ${this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing}
        <ul id="palette-found" role="listbox" aria-label="Found">${found.map((entry, i) => html`
          <li id="palette-${i}" role="option" aria-selected=${i === this.chosen} @click=${() => this.run(entry)}>${entry.text} <span class="hint">${entry.kind}</span></li>`)}</ul>
        ${found.length ? nothing : html`<p class="hint" role="status">Nothing has such a name.</p>`}
      </dialog>`;
  }
}
customElements.define('slipway-palette', Palette);
