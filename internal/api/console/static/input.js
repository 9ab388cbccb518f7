// The input of a run: a form made from the JSON Schema of the graph, beside the same input as JSON.

import {html, keyed, nothing} from './vendor/lit.js';
import {get} from './api.js';
import {View, refusal} from './view.js';

const pretty = value => JSON.stringify(value, null, 2);

const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value);

// plain is a schema without references, and without the alternative null. root is the schema that
// the references are into.
function plain(schema, root) {
  for (let steps = 0; steps < 20 && isObject(schema); steps++) {
    const kinds = (schema.anyOf ?? schema.oneOf ?? []).filter(kind => kind.type !== 'null');
    if (schema.$ref?.startsWith('#/')) {
      schema = schema.$ref.slice(2).split('/').reduce((at, name) => at?.[decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')], root);
    } else if (kinds.length === 1) {
      const {anyOf, oneOf, ...rest} = schema;
      schema = {...rest, ...kinds[0]};
    } else {
      break;
    }
  }
  return isObject(schema) ? schema : {};
}

const typeOf = ({type}) => Array.isArray(type) ? type.find(name => name !== 'null') : type;

// defaults are the values that a schema gives to the members of an object.
function defaults(schema, root) {
  const members = Object.entries(plain(schema, root).properties ?? {}).map(([name, member]) => [name, plain(member, root).default]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined && value !== null));
}

// parsed is what a box with JSON holds: undefined if it is empty. A text that is no JSON keeps the
// form from being sent, and the browser says why.
function parsed(box, fits = () => true) {
  box.setCustomValidity('');
  if (!box.value.trim()) return undefined;
  try {
    const value = JSON.parse(box.value);
    if (fits(value)) return value;
    box.setCustomValidity('This must be a JSON object.');
  } catch {
    box.setCustomValidity('This is not JSON.');
  }
  return undefined;
}

class Input extends View {
  static properties = {path: {}, start: {}, schema: {state: true}, value: {state: true}, version: {state: true}};

  async open() {
    this.value = {};
    this.version = 0;
    await this.attempt(async () => {
      this.schema = (await get(this.path, this.ending.signal)).input_schema ?? {};
      this.value = defaults(this.schema, this.schema);
    });
  }

  // set changes the member at a path, or removes it, and shows the whole as JSON.
  set(path, member) {
    const value = structuredClone(this.value);
    let at = value;
    for (const name of path.slice(0, -1)) at = at[name] = isObject(at[name]) ? at[name] : {};
    const [last] = path.slice(-1);
    if (member === undefined) delete at[last];
    else at[last] = member;
    this.value = value;
    const box = this.querySelector('[name="json"]');
    box.value = pretty(value);
    box.setCustomValidity('');
  }

  // replace takes the JSON that a person wrote, and fills the fields again.
  replace(box) {
    const value = parsed(box, isObject);
    if (box.validity.customError) return;
    this.value = value ?? {};
    this.version++;
  }

  send(event) {
    event.preventDefault();
    this.act(() => this.start({input: this.value}));
  }

  render() {
    if (!this.schema) return this.trouble ? this.problem() : html`<p class="hint">Loading …</p>`;
    const fields = Object.entries(plain(this.schema, this.schema).properties ?? {});
    return html`<form class="edit input" aria-label="Run with an input" @submit=${this.send}>
      ${this.problem()}
      ${fields.length ? keyed(this.version, html`<div class="fields">${this.members(this.schema, [], this.value)}</div>`)
        : html`<p class="hint">The graph does not describe its input.</p>`}
      <label>Input, as JSON <textarea name="json" rows="8" spellcheck="false" .value=${pretty(this.value)} @change=${event => this.replace(event.target)}></textarea></label>
      <button ?disabled=${refusal('editor')} title=${refusal('editor') || nothing}>Run</button>
    </form>`;
  }

  members(schema, path, value) {
    const {properties = {}, required = []} = plain(schema, this.schema);
    return Object.entries(properties).map(([name, member]) =>
      this.field(plain(member, this.schema), [...path, name], isObject(value) ? value[name] : undefined, required.includes(name)));
  }

  // field is what a member of the input is filled in with. An object within an object, and what no
  // simple field fits, is filled in as JSON.
  field(schema, path, value, required) {
    const name = schema.title ?? path.at(-1), type = typeOf(schema);
    const hint = [required ? 'required' : '', schema.description ?? ''].filter(part => part).join(' · ');
    const about = html`${name}${hint ? html` <span class="hint">${hint}</span>` : nothing}`;
    const take = read => event => this.set(path, read(event.target));
    if (type === 'object' && schema.properties && path.length === 1) return html`<fieldset><legend>${about}</legend>${this.members(schema, path, value)}</fieldset>`;
    if (schema.enum) {
      return html`<label>${about} <select @change=${take(box => schema.enum[box.selectedIndex - 1])}><option>not set</option>${schema.enum.map(one => html`<option
        ?selected=${one === value}>${typeof one === 'string' ? one : JSON.stringify(one)}</option>`)}</select></label>`;
    }
    if (type === 'boolean') return html`<label class="check"><input type="checkbox" .checked=${value === true} @change=${take(box => box.checked)}> ${about}</label>`;
    if (type === 'integer' || type === 'number') {
      return html`<label>${about} <input type="number" step=${type === 'integer' ? 1 : 'any'} .value=${typeof value === 'number' ? String(value) : ''}
        @change=${take(box => box.value === '' ? undefined : box.valueAsNumber)}></label>`;
    }
    if (type === 'string') return html`<label>${about} <input autocomplete="off" .value=${typeof value === 'string' ? value : ''} @change=${take(box => box.value || undefined)}></label>`;
    return html`<label>${about} <textarea rows="3" spellcheck="false" .value=${value === undefined ? '' : pretty(value)} @change=${take(box => parsed(box))}></textarea></label>`;
  }
}
customElements.define('slipway-input', Input);
