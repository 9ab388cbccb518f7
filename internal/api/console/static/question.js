// A question of a graph that has paused for a person. Two shapes of questions become forms: that of
// an inbox (action_request, config), and that of the framework's own middleware (action_requests,
// review_configs). The answer to any other question is text or JSON.

import {html, nothing} from './vendor/lit.js';
import {View, action, refusal} from './view.js';

const pretty = value => JSON.stringify(value, null, 2);

// valueOf is what a person typed: JSON if it can be read as JSON, else plain text.
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

class Question extends View {
  static properties = {question: {}, answer: {}};

  // reply sends the value that a form's fields make. A value that cannot be made is explained.
  reply(make) {
    return event => {
      event.preventDefault();
      const fields = new FormData(event.target);
      this.act(() => this.answer(make(fields)));
    };
  }

  // args are the arguments of an action as a person changed them.
  args(text) {
    const args = valueOf(text);
    if (args === null || typeof args !== 'object' || Array.isArray(args)) throw new Error('The arguments must be a JSON object.');
    return args;
  }

  render() {
    const asked = this.question.value, one = Array.isArray(asked) ? asked[0] : asked;
    return html`<section class="question" aria-label="The agent waits for an answer">
      <h3>The agent waits for an answer</h3>
      ${this.problem()}
      ${one?.action_request ? this.inbox(one) : Array.isArray(one?.action_requests) ? this.review(one) : this.other(asked)}
    </section>`;
  }

  submit(text) { return html`<button ?disabled=${refusal('editor')}>${text}</button>`; }

  inbox({action_request: asked, config, description}) {
    const may = config ?? {};
    const send = type => () => this.answer([{type, args: null}]);
    const edit = fields => [{type: 'edit', args: {action: asked.action, args: this.args(fields.get('args'))}}];
    return html`
      <p>${description ?? ''}</p><pre>${asked.action}(${pretty(asked.args)})</pre>
      ${may.allow_accept !== false ? action('Accept', 'editor', send('accept')) : nothing}
      ${may.allow_ignore !== false ? action('Ignore', 'editor', send('ignore'), 'quiet') : nothing}
      ${may.allow_edit !== false ? html`<details><summary>Edit</summary><form @submit=${this.reply(edit)}>
        <label>Arguments, as JSON <textarea name="args" rows="6" spellcheck="false" .value=${pretty(asked.args)}></textarea></label>
        ${this.submit('Accept as edited')}</form></details>` : nothing}
      ${may.allow_respond !== false ? html`<form @submit=${this.reply(fields => [{type: 'response', args: valueOf(fields.get('answer'))}])}>
        <label>Answer, as text or JSON <input name="answer" required autocomplete="off"></label>${this.submit('Answer')}</form>` : nothing}`;
  }

  // review shows each action with the decisions that are allowed. One answer holds all decisions.
  review({action_requests: asked, review_configs: configs}) {
    const allowed = name => (configs ?? []).find(c => c.action_name === name)?.allowed_decisions ?? ['approve', 'edit', 'reject'];
    const decide = fields => ({decisions: asked.map(({name}, i) => {
      const type = fields.get(`decision-${i}`), message = fields.get(`message-${i}`);
      if (type === 'edit') return {type, edited_action: {name, args: this.args(fields.get(`args-${i}`))}};
      return message && type !== 'approve' ? {type, message} : {type};
    })});
    return html`<form @submit=${this.reply(decide)}>
      ${asked.map(({name, args, description}, i) => html`<fieldset><legend>${name}</legend>
        <p>${description ?? ''}</p>
        <label>Decision <select name="decision-${i}">${allowed(name).map(d => html`<option>${d}</option>`)}</select></label>
        <label>Arguments, as JSON, for the decision to edit <textarea name="args-${i}" rows="5" spellcheck="false" .value=${pretty(args)}></textarea></label>
        <label>Message, for the decision not to approve <input name="message-${i}" autocomplete="off"></label>
      </fieldset>`)}
      ${this.submit('Answer')}</form>`;
  }

  other(asked) {
    return html`<pre>${typeof asked === 'string' ? asked : pretty(asked)}</pre>
      <form @submit=${this.reply(fields => valueOf(fields.get('answer')))}>
        <label>Answer, as text or JSON <input name="answer" required autocomplete="off"></label>${this.submit('Answer')}</form>`;
  }
}
customElements.define('slipway-question', Question);
