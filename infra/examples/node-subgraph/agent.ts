import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";

const Trip = Annotation.Root({
  city: Annotation<string>,
  hotel: Annotation<string>,
  log: Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
});

const Booking = Annotation.Root({
  city: Annotation<string>,
  hotel: Annotation<string>,
  offers: Annotation<string[]>,
});

const booking = new StateGraph(Booking)
  .addNode("find", ({ city }) => ({ offers: [`Hotel ${city}`, `${city} Inn`] }))
  .addNode("choose", ({ offers }) => ({ hotel: interrupt<{ choose: string[] }, string>({ choose: offers }) }))
  .addEdge(START, "find")
  .addEdge("find", "choose")
  .addEdge("choose", END)
  .compile();

export const graph = new StateGraph(Trip)
  .addNode("plan", ({ city }) => ({ log: [`going to ${city}`] }))
  .addNode("booking", booking)
  .addNode("confirm", ({ hotel }) => ({ log: [`staying at ${hotel}`] }))
  .addEdge(START, "plan")
  .addEdge("plan", "booking")
  .addEdge("booking", "confirm")
  .addEdge("confirm", END)
  .compile();
