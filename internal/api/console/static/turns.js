// When a page may wait for the server. A browser has six connections for all pages of a server that
// it reaches by HTTP/1.1, and a stream keeps one. If streams had all of them, the reads of every
// page would wait, and a new page would stay blank.

// pause resolves after some time, or when the signal, if there is one, is aborted.
export const pause = (milliseconds, signal) => new Promise(resolve => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); });
});

// shown resolves when the page can be seen, or the signal is aborted.
export const shown = signal => document.hidden && !signal.aborted ? new Promise(resolve => {
  const heard = new AbortController();
  const look = () => {
    if (document.hidden && !signal.aborted) return;
    heard.abort();
    resolve();
  };
  document.addEventListener('visibilitychange', look, {signal: heard.signal});
  signal.addEventListener('abort', look, {signal: heard.signal});
}) : undefined;

// places are the locks of the pages that follow a thread, a run or a log. The stream of the
// workspace's events has a fourth connection, so two are left for reads.
const places = ['slipway-place-1', 'slipway-place-2', 'slipway-place-3'];

// turn is how long a page keeps its place while others wait, in milliseconds.
const turn = 2000;

// plenty tells whether each page can have a connection of its own, as by HTTP/2. Browsers have
// locks only for pages that come by HTTPS or from this machine: other pages cannot take turns.
const plenty = () => !navigator.locks || performance.getEntriesByType('navigation')[0]?.nextHopProtocol === 'h2';

// place resolves to a function that gives the place back, when this page has a place or the signal
// is aborted.
export function place(signal) {
  if (plenty() || signal.aborted) return () => {};
  return new Promise(resolve => {
    const placed = new AbortController(), waiting = AbortSignal.any([signal, placed.signal]);
    signal.addEventListener('abort', () => resolve(() => {}));
    for (const name of places) {
      navigator.locks.request(name, {signal: waiting}, () => waiting.aborted ? undefined : new Promise(leave => {
        placed.abort();
        resolve(leave);
      })).catch(() => {}); // the page has another place, or needs none any longer
    }
  });
}

// giveWay calls leave when this page has had its turn and another page waits for a place.
export async function giveWay(signal, leave) {
  if (plenty()) return;
  for (;;) {
    await pause(turn, signal);
    const {pending} = await navigator.locks.query();
    if (signal.aborted) return;
    if (pending.some(({name}) => places.includes(name))) return leave();
  }
}
