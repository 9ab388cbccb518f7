import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.jsx";

/** Connect asks for the agent. What is entered stays in this tab. */
function Connect({ onConnect }) {
  const connect = (event) => {
    event.preventDefault();
    const { apiUrl, apiKey, configurable } = Object.fromEntries(new FormData(event.target));
    onConnect({ apiUrl, apiKey, configurable: JSON.parse(configurable || "{}") });
  };
  return (
    <form onSubmit={connect}>
      <label>URL of the agent <input name="apiUrl" type="url" required /></label>
      <label>API key <input name="apiKey" type="password" autoComplete="off" required /></label>
      <label>Configuration (JSON) <textarea name="configurable" placeholder="{}" /></label>
      <button>Connect</button>
    </form>
  );
}

function Page() {
  const [agent, setAgent] = useState(() => JSON.parse(sessionStorage.getItem("agent")));
  const connect = (entered) => {
    sessionStorage.setItem("agent", JSON.stringify(entered));
    setAgent(entered);
  };
  return (
    <>
      <h1>Chat</h1>
      {agent ? <Chat agent={agent} /> : <Connect onConnect={connect} />}
    </>
  );
}

createRoot(document.getElementById("page")).render(<StrictMode><Page /></StrictMode>);
