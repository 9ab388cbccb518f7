// The events of the workspace. A browser has six connections for all pages of a server that it
// reaches without TLS, so the pages share one stream: the page that holds a lock follows the events
// and passes them on to the others.

import {follow} from './api.js';
import {shown} from './turns.js';

// watch calls take with each event of the workspace from now on, and state as follow does.
// Before each "open", events may have been missed. A page that cannot be seen hears nothing, and is
// told the state when it is seen again. watch ends when the signal is aborted, or when the server
// refuses the stream. Browsers have locks only for pages that come by HTTPS or from this machine;
// each other page follows the events for itself.
export async function watch(workspace, {signal, take, state}) {
  const name = `slipway-events-${workspace}`, own = Math.random(), channel = navigator.locks && new BroadcastChannel(name);
  let last, passed; // passed is the change of state that this page has passed on, while it holds the lock
  const hear = ({event, change, why}) => {
    if (change) return state(change, why);
    last = event.id ?? last;
    take(event.data);
  };
  const tell = message => {
    if (message.change) passed = message;
    channel?.postMessage(message);
    hear(message);
  };
  if (channel) {
    signal.addEventListener('abort', () => channel.close());
    channel.onmessage = ({data: {asks, to, ...message}}) => {
      if (asks && passed) channel.postMessage({...passed, to: asks});
      else if (!asks && !document.hidden && (!to || to === own)) hear(message);
    };
  }
  while (!signal.aborted) {
    await shown(signal);
    const hidden = new AbortController(), visible = AbortSignal.any([signal, hidden.signal]);
    document.addEventListener('visibilitychange', () => hidden.abort(), {signal: visible});
    const work = () => follow('/v2/events?from=now', {signal: visible, from: last, shared: true, take: event => tell({event}), state: (change, why) => tell({change, why})});
    try {
      if (!channel) await work();
      else if (!visible.aborted) {
        channel.postMessage({asks: own});
        await navigator.locks.request(name, {signal: visible}, work);
      }
    } catch (error) {
      if (!visible.aborted) throw error;
    } finally {
      passed = undefined;
    }
  }
}
