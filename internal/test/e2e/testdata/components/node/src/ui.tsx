import { useStreamContext } from "@langchain/langgraph-sdk/react-ui";
import { clsx } from "clsx";
import { useState } from "react";
import "./ui.css";

function Weather({ city, celsius }: { city: string; celsius: number }) {
  const [isOpen, open] = useState(false);
  const { messages } = useStreamContext<{ messages: { content: string }[] }>();
  return (
    <button className={clsx("weather", isOpen && "open")} onClick={() => open(true)}>
      {isOpen ? `${city}: ${celsius} °C. ${messages.at(-1)?.content}` : city}
    </button>
  );
}

export default { weather: Weather };
