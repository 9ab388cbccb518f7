/** A problem that the graph's author can mend, as one sentence. */
export class UserError extends Error {
  name = "UserError";
}

/** A body that is not an invocation, as one sentence. */
export class InvalidInvocation extends Error {
  name = "InvalidInvocation";
}

/** A request that is answered with a status and a sentence. */
export class Refusal extends Error {
  constructor(status, kind, message) {
    super(message);
    Object.assign(this, { status, kind });
  }
}

/** Stored data that no version of this package has written. */
export class DataError extends Error {
  name = "DataError";
}

/** A command that the repository's release of the framework does not know, as one sentence. */
export class CommandError extends Error {
  name = "CommandError";
}

/**
 * The form of an error event.
 * @param {unknown} error
 * @returns {{error: string, message: string}}
 */
export function describeError(error) {
  try {
    const speaks = error instanceof Error || typeof error?.message === "string";
    return speaks ? { error: String(error.name || "Error"), message: String(error.message) } : { error: "Error", message: String(error) };
  } catch {
    return { error: "Error", message: "the text of the error cannot be made" };
  }
}
