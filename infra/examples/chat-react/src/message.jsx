import { useState } from "react";

/** Message is one message. A person may edit what they have said. */
export function Message({ message, onEdit }) {
  const [isEdited, setEdited] = useState(false);
  const save = (event) => {
    event.preventDefault();
    setEdited(false);
    void onEdit(new FormData(event.target).get("text"));
  };
  if (isEdited) {
    return (
      <form onSubmit={save}>
        <label>Edited message <input name="text" defaultValue={message.text} required /></label>
        <button>Save</button>
      </form>
    );
  }
  return (
    <article className={message.type} aria-label={message.type}>
      {message.text}
      {(message.tool_calls ?? []).map((call) => <code key={call.id}>{call.name}({JSON.stringify(call.args)})</code>)}
      {message.type === "human" && <button onClick={() => setEdited(true)}>Edit</button>}
    </article>
  );
}
