/**
 * Questions asks a person about all that the agent waits for. Tools that run beside each other may
 * ask at the same time: the answers go back together.
 */
export function Questions({ interrupts, onAnswer }) {
  const answer = (event) => {
    event.preventDefault();
    const approved = new FormData(event.target);
    void onAnswer(Object.fromEntries(interrupts.map(({ id }) => [id, { approved: approved.has(id) }])));
  };
  return (
    <form aria-label="Questions" onSubmit={answer}>
      {interrupts.map(({ id, value }) => (
        <label key={id}>
          <input type="checkbox" name={id} /> Approve {typeof value === "string" ? value : JSON.stringify(value)}
        </label>
      ))}
      <button>Answer</button>
    </form>
  );
}
