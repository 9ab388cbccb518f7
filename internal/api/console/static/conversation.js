// A conversation as the thread's event log tells it: a pure function of events, so that any moment
// of the past can be shown again.

// Conversation takes the events of GET /threads/{id}/stream in order.
export class Conversation {
  messages = [];
  running = new Set();
  questions = [];

  take(event) {
    const {type, data} = event;
    if (type === 'metadata') {
      if (data.status === 'run_done') this.running.delete(data.run_id);
      else if (data.run_id) this.running.add(data.run_id);
    } else if (type === 'values') {
      if (Array.isArray(data.messages)) this.messages = data.messages.map(m => ({...m}));
      this.questions = data.__interrupt__ ?? [];
    } else if (type === 'messages') {
      this.#show(data);
    }
  }

  // #show adds a chunk to the message that it is a part of. Messages of type "ai" come whole.
  #show([chunk]) {
    if (!chunk?.id) return;
    let message = this.messages.find(m => m.id === chunk.id);
    if (message && !message.open) return;
    if (!message) {
      message = {...chunk, type: chunk.type === 'AIMessageChunk' ? 'ai' : chunk.type, open: true, content: ''};
      this.messages = [...this.messages, message];
    }
    const text = typeof chunk.content === 'string' ? chunk.content : (chunk.content ?? []).map(b => b.text ?? '').join('');
    if (chunk.type === 'AIMessageChunk') message.content += text;
    else Object.assign(message, chunk);
    if (chunk.tool_calls?.length) message.tool_calls = chunk.tool_calls;
  }

  // settle replaces what was shown by the state of the thread, which is what was kept.
  settle(state) {
    if (Array.isArray(state.values?.messages)) this.messages = state.values.messages;
    this.questions = state.interrupts ?? state.tasks?.flatMap(t => t.interrupts ?? []) ?? [];
  }
}
