// The inbox: the threads of all deployments that wait for a person. They are read once when the
// page begins to follow the workspace, and then those of a deployment when its questions have
// changed.

import {html} from './vendor/lit.js';
import {Refused, get, listed, searched} from './api.js';
import {View, copyAsCurl, when} from './view.js';

// most is how many pages of the threads of one deployment are read.
const most = 10;

// subjects are the events after which the threads of a deployment may wait, or wait no longer.
const subjects = ['deployment.questions_changed', 'deployment.undeleted', 'revision.deployed'];

const searchOf = deployment => `/d/${deployment}/threads/search`;

const wanted = {status: 'interrupted', limit: 100};

class Inbox extends EventTarget {
  #known = false;
  #found = new Map();
  #wanted = new Set();
  #reading = false;

  // trouble says why the threads of all deployments could not be read; "" after they were.
  trouble = '';

  // rows are the deployments with their threads, the oldest question first; undefined until they
  // were read.
  get rows() {
    if (!this.#known) return undefined;
    return [...this.#found.values()].flatMap(({deployment, threads}) => threads.map(thread => ({deployment, thread})))
      .sort((a, b) => a.thread.updated_at.localeCompare(b.thread.updated_at));
  }

  // note takes an event of the workspace. "watching" says that events may have been missed.
  note({type, data}) {
    if (type === 'watching') this.#wanted.add('all');
    else if (subjects.includes(type)) this.#wanted.add(data.deployment_id);
    else if (type === 'deployment.deleted') this.#drop(data.deployment_id);
    this.#read();
  }

  forget() {
    this.#wanted.clear();
    this.#known = false;
    this.trouble = '';
    this.#found = new Map();
    this.dispatchEvent(new Event('change'));
  }

  #drop(deployment) {
    this.#found.delete(deployment);
    this.dispatchEvent(new Event('change'));
  }

  async #read() {
    if (this.#reading) return;
    this.#reading = true;
    for (const deployment of this.#wanted) { // also what is added meanwhile
      this.#wanted.delete(deployment);
      const into = this.#found;
      try {
        await (deployment === 'all' ? this.#readAll(into) : this.#readOne(into, await get(`/v2/deployments/${deployment}`)));
        if (deployment === 'all' && into === this.#found) {
          this.#known = true;
          this.trouble = '';
        }
      } catch (error) {
        if (deployment === 'all') this.trouble = error.message;
        else if (error instanceof Refused) into.delete(deployment); // it is gone
      }
      this.dispatchEvent(new Event('change'));
    }
    this.#reading = false;
  }

  async #readAll(into) {
    const {rows: all} = await listed('/v2/deployments?limit=100', Infinity);
    for (const id of into.keys()) if (!all.some(d => d.id === id)) into.delete(id);
    await Promise.allSettled(all.map(d => this.#readOne(into, d)));
  }

  async #readOne(into, deployment) {
    const threads = deployment.active_revision_id ? await this.#waiting(searchOf(deployment.id)) : [];
    if (threads.length) into.set(deployment.id, {deployment, threads});
    else into.delete(deployment.id);
  }

  // #waiting reads the threads that have questions. Those that a person stopped have the same
  // status.
  async #waiting(path) {
    const {rows} = await searched(path, wanted, most);
    return rows.filter(thread => Object.keys(thread.interrupts ?? {}).length);
  }
}

export const inbox = new Inbox();

// asked is a question in a few words.
function asked(thread) {
  const [question] = Object.values(thread.interrupts ?? {}).flat(), value = question?.value;
  const first = Array.isArray(value) ? value[0] : value;
  return first?.description ?? first?.action_request?.action ?? first?.action_requests?.map(a => a.description ?? a.name).join(', ')
    ?? (typeof value === 'string' ? value : JSON.stringify(value ?? 'It waits to be continued.'));
}

class InboxView extends View {
  open() {
    const show = () => {
      this.trouble = inbox.trouble;
      this.requestUpdate();
    };
    inbox.addEventListener('change', show, {signal: this.ending.signal});
    show();
  }

  render() {
    return html`
      <div class="head"><h1>Inbox</h1></div>
      ${this.problem()}
      ${this.listed('Threads that wait for an answer', [
        ['Question', ({deployment, thread}) => html`<a class="clip" dir="auto" href="#/deployments/${deployment.id}/threads/${thread.thread_id}">${asked(thread)}</a>`],
        ['Deployment', ({deployment}) => html`<a href="#/deployments/${deployment.id}">${deployment.name}</a>`],
        ['Since', ({thread}) => when(thread.updated_at)],
        ['', ({deployment}) => copyAsCurl(searchOf(deployment.id), 'POST', wanted)],
      ], inbox.rows, 'No thread waits for an answer.')}`;
  }
}
customElements.define('slipway-inbox', InboxView);
