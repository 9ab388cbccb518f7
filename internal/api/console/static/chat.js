// A thread: the conversation with a composer that is always enabled, the runs, the questions of a
// graph, the history, and "seen and kept", which shows what a client had seen at any moment.

import {html, keyed, nothing} from './vendor/lit.js';
import {call, follow, get, searched} from './api.js';
import {Conversation} from './conversation.js';
import {textOf} from './threads.js';
import {View, badge, copyAsCurl, reconnecting, refusal, seconds, when} from './view.js';
import './history.js';
import './input.js';
import './question.js';

// kept is how many events the page remembers for "seen and kept".
const kept = 20000;

const questionID = question => question.id ?? question.interrupt_id;

const active = run => run.status === 'running' || run.status === 'pending';

class Chat extends View {
  static properties = {deployment: {}, thread: {}, talk: {state: true}, runs: {state: true}, past: {state: true}, filling: {state: true}, moment: {state: true}, away: {state: true}, assistant: {state: true}};

  get base() { return `/d/${this.deployment}/threads/${this.thread}`; }

  async open() {
    this.talk = new Conversation();
    this.events = [];
    this.taken = 0;
    this.assistant = 'agent';
    await this.attempt(async () => {
      // The state holds all of the runs that had ended when it was read, so the runs are read
      // before.
      const [graphs] = await Promise.all([
        call('POST', `/d/${this.deployment}/assistants/search`, {limit: 50}, this.ending.signal), this.readRuns(),
      ]);
      this.ended = this.runs.find(r => !active(r))?.run_id ?? '';
      this.active = new Set(this.runs.filter(active).map(r => r.run_id));
      const state = await get(`${this.base}/state`, this.ending.signal);
      this.graphs = graphs;
      this.assistant = state.metadata?.assistant_id ?? graphs[0]?.assistant_id ?? 'agent';
      this.talk.settle(state);
      this.requestUpdate();
      await follow(`${this.base}/stream`, {
        signal: this.ending.signal, from: '-', take: event => this.take(event), state: (state, why) => { this.away = state === 'away' && {why}; },
      });
    });
  }

  // take takes the thread's events from the first one on. Those of runs that had ended when the
  // page was opened are for "seen and kept" alone: what was kept of them is shown already.
  take(event) {
    this.taken++;
    if (this.events.length < kept) this.events.push(event);
    let run = this.run;
    if (event.type === 'metadata' && event.data.run_id) {
      run = event.data.run_id;
      if (event.data.status !== 'run_done') this.run = run;
    }
    if (!this.isPast(run)) {
      this.talk.take(event);
      if (event.type === 'metadata') this.settle(event);
    }
    this.paint();
  }

  // isPast tells whether a run had ended when the page was opened. The ids of runs sort by
  // creation.
  isPast(run) { return run !== undefined && run <= this.ended && !this.active.has(run); }

  // settle reads what was kept, when a run has ended and no other has begun since.
  async settle(event) {
    await this.attempt(async () => {
      await this.readRuns();
      if (event.data.status === 'run_done' && !this.talk.running.size) await this.readState();
    });
  }

  // readState shows the state, unless more events came while it was read.
  async readState() {
    const position = this.taken, state = await get(`${this.base}/state`, this.ending.signal);
    if (position === this.taken) this.talk.settle(state);
    this.requestUpdate();
  }

  async readRuns() {
    const list = await searched(`${this.base}/runs?limit=20`, undefined, this.count, this.ending.signal);
    this.runs = list.rows;
    this.moreRuns = list.more;
  }

  paint() {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(() => {
      this.painting = false;
      this.requestUpdate();
    });
  }

  get busy() { return (this.runs ?? []).some(active); }

  // start resolves to whether the run was begun.
  async start(body) {
    const begun = await this.act(() => call('POST', `${this.base}/runs`, {
      assistant_id: this.assistant, stream_mode: ['messages-tuple', 'values', 'updates'], stream_resumable: true, multitask_strategy: 'interrupt', ...body,
    }));
    await this.attempt(() => this.readRuns());
    return begun;
  }

  // send sends the text. A text that was not taken comes back, before what was typed meanwhile.
  async send(event) {
    event.preventDefault();
    const box = this.querySelector('textarea'), text = box.value.trim();
    if (!text || refusal('editor')) return;
    box.value = '';
    this.toEnd();
    if (!await this.start({input: {messages: [{role: 'user', content: text}]}})) box.value = [text, box.value].filter(part => part).join('\n');
  }

  typed(event) {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) this.send(event);
  }

  // stop interrupts the runs; what was shown stays.
  async stop() {
    const running = this.runs.filter(active);
    await this.act(() => Promise.all(running.map(r => call('POST', `${this.base}/runs/${r.run_id}/cancel?action=interrupt`, {}))));
  }

  get box() { return this.querySelector('.talk'); }

  toEnd() { this.box.scrollTop = this.box.scrollHeight; }

  // willUpdate notes whether the end of the conversation is in view: then it stays in view.
  willUpdate() { this.atEnd = !this.box || this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 80; }

  // updated shows the end when it has its size, questions included. It moves the slider after its
  // new end is known: a browser keeps the value within the ends.
  updated() {
    super.updated();
    if (this.atEnd) Promise.all([...this.box.children].map(part => part.updateComplete)).then(() => this.toEnd());
    const slider = this.querySelector('input[type="range"]');
    if (slider) slider.value = this.moment ?? this.events.length;
  }

  render() {
    const now = this.moment === undefined ? this.talk : this.at(this.moment);
    return html`
      <div class="head"><h1>Thread</h1> ${this.busy ? badge('running') : badge('idle')} ${this.away ? reconnecting(this.away.why) : nothing}
        <a href="#/deployments/${this.deployment}/threads">all threads</a>
        ${(this.graphs?.length ?? 0) > 1 ? html`<label>Assistant <select @change=${e => { this.assistant = e.target.value; }}>${this.graphs.map(a => html`<option
          value=${a.assistant_id} ?selected=${a.assistant_id === this.assistant}>${a.name}</option>`)}</select></label>` : nothing}
        ${copyAsCurl(`${this.base}/state`)}</div>
      ${this.problem()}
      <div class="talk" role="log" aria-live="polite" aria-relevant="additions" tabindex="0" aria-label="The conversation">
        ${now.messages.length ? now.messages.map(m => this.message(m)) : this.beginning()}
        ${this.moment === undefined ? now.questions.map(q => keyed(questionID(q), html`<slipway-question .question=${q}
          .answer=${value => this.start({command: {resume: {[questionID(q)]: value}}})}></slipway-question>`)) : nothing}
      </div>
      <form class="composer" @submit=${this.send}>
        <label class="hidden" for="text">Message</label>
        <textarea id="text" rows="2" placeholder="Write a message. Enter sends it, also while an answer is being written." @keydown=${this.typed}></textarea>
        <button ?disabled=${refusal('editor')}>${this.busy ? 'Interrupt and send' : 'Send'}</button>
        ${this.busy ? html`<button type="button" class="danger" ?disabled=${refusal('editor')} @click=${this.stop}>Stop</button>` : nothing}
      </form>
      ${refusal('editor') ? html`<p class="hint">${refusal('editor')}</p>` : nothing}
      <details @toggle=${e => { this.filling = e.target.open; }}><summary>Run with an input</summary>${this.filling ? keyed(this.assistant, html`<slipway-input
        .path=${`/d/${this.deployment}/assistants/${this.assistant}/schemas`} .start=${body => this.start(body)}></slipway-input>`) : nothing}</details>
      ${this.slider()}
      <details><summary>Runs</summary>${this.listed('Runs of this thread', [
        ['Status', r => badge(r.status)],
        ['Strategy', r => r.multitask_strategy],
        ['Began', r => when(r.created_at)],
        ['Took', r => r.status === 'running' ? '' : seconds(Date.parse(r.updated_at) - Date.parse(r.created_at))],
        ['Reason', r => r.cancel_reason ?? ''],
        ['Id', r => html`<a href="#/deployments/${this.deployment}/threads/${this.thread}/runs/${r.run_id}"><code>${r.run_id}</code></a>`],
      ], this.runs, 'There is no run yet.')}
        ${this.further(this.moreRuns, () => this.attempt(() => this.readRuns()))}</details>
      <details @toggle=${e => { this.past = e.target.open; }}><summary>History</summary>${this.past ? html`<slipway-history
        .base=${this.base} .runs=${this.runs} .start=${body => this.start(body)} .changed=${() => this.attempt(() => this.readState())}></slipway-history>` : nothing}</details>`;
  }

  // beginning is what stands in the place of the first message.
  beginning() {
    if (!this.graphs) return this.trouble ? nothing : html`<p class="hint">Loading …</p>`;
    return html`<p class="hint">Write the first message.</p>`;
  }

  message(m) {
    const incomplete = m.response_metadata?.incomplete, text = textOf(m);
    return html`<article class="message ${m.type} ${incomplete ? 'cut' : ''}" data-id=${m.id ?? nothing}>
      <h3>${{human: 'You', ai: 'Agent', tool: `Tool ${m.name ?? ''}`, system: 'System'}[m.type] ?? m.type}</h3>
      ${m.type === 'tool' ? html`<details><summary>result</summary><pre>${text}</pre></details>` : text ? this.prose(text) : nothing}
      ${(m.tool_calls ?? []).map(t => html`<details class="call"><summary>calls <code>${t.name}</code></summary><pre>${JSON.stringify(t.args, null, 2)}</pre></details>`)}
      ${incomplete ? html`<p class="mark">interrupted here</p>` : nothing}
    </article>`;
  }

  // prose shows text, and what stands between fences as code.
  prose(text) {
    return text.split('```').map((part, i) => i % 2 ? html`<pre><code>${part.replace(/^\w*\n/, '')}</code></pre>` : html`<p class="text">${part}</p>`);
  }

  // at is the conversation as a client had seen it after so many events.
  at(count) {
    const talk = new Conversation();
    for (const event of this.events.slice(0, count)) talk.take({...event, data: structuredClone(event.data)});
    return talk;
  }

  slider() {
    const count = this.events?.length ?? 0;
    if (!count) return nothing;
    const cuts = this.events.map((e, i) => [e, i + 1]).filter(([e]) => e.type === 'metadata' && e.data.status === 'run_done'
      && this.runs?.find(r => r.run_id === e.data.run_id)?.status === 'interrupted').map(([, i]) => i);
    const move = event => { this.moment = Number(event.target.value) >= this.events.length ? undefined : Number(event.target.value); };
    const position = this.moment ?? count;
    return html`<section class="seen" aria-label="Seen and kept">
      <label>Seen and kept <input type="range" min="0" max=${count} @input=${move}></label>
      <output>${this.moment === undefined ? 'now' : `after event ${position} of ${count}`}</output>
      ${cuts.map((at, i) => html`<button class="quiet" @click=${() => { this.moment = at; }}>interrupt ${i + 1}</button>`)}
      ${this.moment === undefined ? nothing : html`<button @click=${() => { this.moment = undefined; }}>Back to now</button>`}
    </section>`;
  }
}
customElements.define('slipway-chat', Chat);
