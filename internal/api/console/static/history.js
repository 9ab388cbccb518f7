// The checkpoints of a thread: run on from one, or edit the state that it has. An edit makes a new
// checkpoint; the edited one stays as it is.

import {html, nothing} from './vendor/lit.js';
import {call, get} from './api.js';
import {textOf} from './threads.js';
import {Live, action, copyAsCurl, refusal, when} from './view.js';

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// changes is the update that makes the edited values of the values before. If all messages before
// have ids, they are updated one by one: one that is missing is removed.
function changes(before, edited) {
  if (edited === null || typeof edited !== 'object' || Array.isArray(edited)) throw new Error('The state must be a JSON object.');
  const missing = Object.keys(before).filter(name => !Object.hasOwn(edited, name));
  if (missing.length) throw new Error(`A value cannot be removed, only changed. These are missing: ${missing.join(', ')}.`);
  const update = {};
  for (const [name, value] of Object.entries(edited)) {
    const old = before[name];
    if (same(old, value)) continue;
    if (name !== 'messages' || !Array.isArray(value) || !Array.isArray(old) || !old.every(m => m?.id)) {
      update[name] = value;
      continue;
    }
    const gone = old.filter(m => !value.some(v => v?.id === m.id)).map(m => ({type: 'remove', id: m.id, content: ''}));
    const messages = [...gone, ...value.filter(v => !old.some(m => same(m, v)))];
    if (messages.length) update.messages = messages;
  }
  if (!Object.keys(update).length) throw new Error('Nothing is changed.');
  return update;
}

class History extends Live {
  // runs are the runs of the thread: if they change, the history is read again. start begins a run,
  // changed is told that the state is another.
  static properties = {base: {}, runs: {}, start: {}, changed: {}, rows: {state: true}, edited: {state: true}};

  updated(properties) { if (properties.has('runs')) this.refresh(); }

  get path() { return `${this.base}/history?limit=20`; }

  async read() { this.rows = await get(this.path, this.ending.signal); }

  // save makes a checkpoint with the edited state, and goes on from it if the second button asks
  // so.
  async save(event) {
    event.preventDefault();
    const fields = new FormData(event.target), node = fields.get('as_node').trim(), goOn = event.submitter.value === 'go on', from = this.edited;
    const saved = await this.act(() => {
      let edited;
      try {
        edited = JSON.parse(fields.get('values'));
      } catch (error) {
        throw new Error(`The state is no JSON: ${error.message}`);
      }
      return call('POST', `${this.base}/state`, {values: changes(from.values, edited), checkpoint: from.checkpoint, ...node ? {as_node: node} : {}});
    });
    if (!saved) return;
    this.edited = undefined;
    await this.changed();
    if (goOn) await this.start({checkpoint: this.done.checkpoint, input: null});
    await this.refresh();
  }

  render() {
    return html`${this.problem()}${this.edited ? this.editor() : nothing}${this.listed('Checkpoints, the newest first', [
      ['Step', c => c.metadata?.step ?? ''],
      ['Source', c => c.metadata?.source ?? ''],
      ['Next', c => (c.next ?? []).join(', ') || 'end'],
      ['Messages', c => c.values?.messages?.length ?? 0],
      ['Last message', c => html`<span class="clip" dir="auto">${textOf(c.values?.messages?.at(-1))}</span>`],
      ['Made', c => when(c.created_at)],
      ['', c => html`${c.next?.length ? action('run on from here', 'editor', () => this.start({checkpoint: c.checkpoint, input: null}), 'quiet') : nothing}
        ${action('edit', 'editor', () => { this.edited = c; }, 'quiet')}`],
    ], this.rows, 'There is no checkpoint yet.')}${copyAsCurl(this.path)}`;
  }

  editor() {
    const why = refusal('editor');
    return html`<form class="edit" aria-label="Edit the state" @submit=${this.save}>
      <label>State at step ${this.edited.metadata?.step ?? ''}, as JSON
        <textarea name="values" rows="14" spellcheck="false" .value=${JSON.stringify(this.edited.values, null, 2)}></textarea></label>
      <p class="hint">If a channel has a reducer, the graph combines the changed value with the present one. Messages that have ids are
        changed or removed one by one, and new messages are added at the end.</p>
      <label>As the node (if it is left empty, the graph decides) <input name="as_node" autocomplete="off" spellcheck="false"></label>
      <button ?disabled=${why}>Save</button> <button ?disabled=${why} value="go on">Save and run on</button>
      <button type="button" class="quiet" @click=${() => { this.edited = undefined; }}>Cancel</button>
    </form>`;
  }
}
customElements.define('slipway-history', History);
