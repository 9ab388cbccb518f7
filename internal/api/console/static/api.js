// Calls of the server's interface. The cookie of the session goes along by itself. The header holds
// the session's proof, which this origin keeps: a page at another port of the host has the cookie,
// but not the proof. Before the sign-in there is none, and the header only marks the request.

import {giveWay, pause, place, shown} from './turns.js';

const proofHeader = 'X-Slipway-Console';
const own = () => ({[proofHeader]: localStorage.getItem('proof') ?? 'none'});

// session is what is known of who is signed in.
export const session = {role: 'viewer', get kept() { return localStorage.getItem('proof') !== null; }};

// keepProof keeps the proof of a session, or forgets it when there is none.
export function keepProof(proof) {
  if (proof) localStorage.setItem('proof', proof);
  else localStorage.removeItem('proof');
}

// entering is the newest sign-in. It ends the session of the requests before it.
let entering = Promise.resolve();

// enter signs in with a code.
export function enter(code) {
  entering = call('POST', '/console/session', {code}).then(({proof}) => keepProof(proof));
  return entering;
}

// Refused is an answer that is not a success. Its message is the server's own sentence. wait is
// after how many seconds the server wants to be asked again, 0 if it does not say.
export class Refused extends Error {
  constructor(status, message, wait) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

const secondsToWait = response => Number(response.headers.get('Retry-After')) || 0;

function sentence(status, body) {
  const detail = body?.detail;
  if (typeof detail === 'string') return detail;
  if (Array.isArray(detail)) return detail.map(d => `${d.loc.join('.')}: ${d.msg}`).join('; ');
  return `The server answered with the status ${status}.`;
}

// check returns the answer to a request with these headers if it is a success.
async function check(response, headers) {
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  // A code that is refused says nothing of the session that there is, and neither does an agent
  // that lets in whom it wants to, or a request of the session before.
  const at = new URL(response.url).pathname;
  if (response.status === 401 && at !== '/console/session' && !at.startsWith('/d/')) {
    await entering.catch(() => {});
    if (headers[proofHeader] === own()[proofHeader]) window.dispatchEvent(new CustomEvent('signed-out'));
  }
  throw new Refused(response.status, sentence(response.status, body), secondsToWait(response));
}

// limits are the reads that wait for the limits of the workspace, each with the server's sentence.
const limits = new Map();

// limit notes why a read waits, or that it waits no longer, and tells the page the newest reason.
function limit(read, why) {
  if (!(why ? limits.set(read, why) : limits.delete(read))) return;
  window.dispatchEvent(new CustomEvent('limited', {detail: [...limits.values()].at(-1) ?? ''}));
}

// send waits when a read is one too many for the limits of the workspace, and reads again until the
// read is answered. A read that waits for the second time says so.
async function send(method, path, body, signal) {
  const headers = own(), read = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    for (let tries = 1;; tries++) {
      const response = await fetch(path, {method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body)}).catch(error => {
        throw error instanceof TypeError ? new Error('The server does not answer.') : error; // a browser says "Failed to fetch"
      });
      if (method !== 'GET' || response.status !== 429) return await check(response, headers);
      if (tries > 1) limit(read, sentence(response.status, await response.json().catch(() => null)));
      await pause(1000 * (secondsToWait(response) || 1), signal);
    }
  } finally {
    limit(read);
  }
}

// call sends a request and returns the JSON of its answer, null where the answer is empty.
export async function call(method, path, body, signal) {
  const text = await (await send(method, path, body, signal)).text();
  return text ? JSON.parse(text) : null;
}

export const get = (path, signal) => call('GET', path, undefined, signal);

// pages reads the first pages of a list, and resolves to their rows and whether there are more.
// read gets the position of a page, and resolves to its rows and the position of the next page, if
// there is one.
async function pages(count, read) {
  const rows = [];
  let next;
  do {
    const page = await read(next);
    rows.push(...page.rows);
    next = page.next;
  } while (--count > 0 && next !== undefined);
  return {rows, more: next !== undefined};
}

// join adds a parameter to a path.
const join = (path, name, value) => `${path}${path.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(value)}`;

// listed is pages of the control plane, whose lists have cursors.
export const listed = (path, count, signal) => pages(count, async cursor => {
  const list = await get(cursor ? join(path, 'cursor', cursor) : path, signal);
  return {rows: list.resources ?? list, next: list.cursor || undefined};
});

// searched is pages of an agent server, whose lists have offsets: of a search, or of a path if body
// is undefined. A page of large rows has fewer rows than its limit, so a header tells where the
// next one begins.
export const searched = (path, body, count, signal) => pages(count, async offset => {
  const at = !body && offset ? join(path, 'offset', offset) : path;
  const response = await send(body ? 'POST' : 'GET', at, body && (offset ? {...body, offset: Number(offset)} : body), signal);
  return {rows: await response.json(), next: response.headers.get('X-Pagination-Next') ?? undefined};
});

// parts cuts what arrives into server-sent events.
async function* parts(reader) {
  const decoder = new TextDecoder();
  let rest = '', event = {};
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, {stream: true})).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data !== undefined) yield event;
        event = {};
      } else if (!line.startsWith(':')) {
        const at = line.indexOf(':');
        const field = line.slice(0, at), text = line.slice(at + 1).replace(/^ /, '');
        event[field] = field === 'data' && event.data !== undefined ? event.data + '\n' + text : text;
      }
    }
  }
}

// follow calls take with each event of a stream, and takes the stream up again behind the last
// event when the connection breaks. It ends when the signal is aborted, when take returns false,
// when a stream has ended and goesOn returns false, or when the server refuses the stream. state is
// told "open" and "away", and with "away" a sentence if a limit is reached. A page that cannot be
// seen has no connection, and the others take turns, unless they share the stream.
export async function follow(path, {signal, from, take, state = () => {}, goesOn = () => true, shared = false}) {
  let last = from, failures = 0;
  while (!signal.aborted) {
    await shown(signal);
    let wait = 250;
    const end = new AbortController(), connection = AbortSignal.any([signal, end.signal]);
    document.addEventListener('visibilitychange', () => end.abort(), {signal: connection});
    const leave = shared ? () => {} : await place(connection);
    if (!shared) giveWay(connection, () => end.abort());
    try {
      const headers = {...own(), Accept: 'text/event-stream'};
      if (last) headers['Last-Event-ID'] = last;
      const response = await check(await fetch(path, {headers, signal: connection}), headers);
      state('open');
      failures = 0;
      for await (const event of parts(response.body.getReader())) {
        if (take({type: event.event, data: JSON.parse(event.data), id: event.id}) === false) return;
        if (event.id) last = event.id;
      }
      if (!await goesOn()) return;
    } catch (error) {
      if (signal.aborted) return;
      if (end.signal.aborted) continue;
      if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
      failures++;
      wait = Math.min(250 * 2 ** failures, 5000);
      if (error.status === 429) {
        const seconds = error.wait || Math.ceil(wait / 1000);
        wait = 1000 * seconds;
        state('away', `${error.message} The console tries again in ${seconds} s.`);
      } else state('away');
    } finally {
      end.abort();
      leave();
    }
    await pause(wait, signal);
  }
}

// curl is a command that asks the server the same. The key is a variable of the shell.
export function curl(method, path, body) {
  const parts = ['curl -sS --fail-with-body -H "X-Api-Key: $KEY"'];
  if (method !== 'GET') parts.push(`-X ${method}`);
  if (body !== undefined) parts.push(`-H 'Content-Type: application/json' -d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`);
  return [...parts, `'${location.origin}${path}'`].join(' ');
}
