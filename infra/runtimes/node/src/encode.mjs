import { describeError } from "./errors.mjs";

/**
 * JSON as the framework's clients expect it: messages as their fields, whatever else a state holds
 * as something readable. Every value has a form, so that nothing an agent puts into its state can
 * end a stream.
 * @param {unknown} value
 * @returns {string}
 */
export function encode(value) {
  return wellFormed(stringify(value) ?? "null");
}

function stringify(value) {
  try {
    return JSON.stringify(value, replace);
  } catch {
    return JSON.stringify(plain(value, [])); // cycles, huge integers, objects that throw
  }
}

/**
 * Replaces each half of a surrogate pair, which JSON.stringify writes as an escape: the parsers of
 * other languages refuse it.
 */
function wellFormed(json) {
  if (!json.includes("\\ud")) return json;
  return json.replace(/\\(?:(ud[89a-f]..)|.)/g, (escape, half) => (half ? "\ufffd" : escape));
}

/** @this {any} */
function replace(key, value) {
  const raw = this[key];
  return typeof raw === "object" && raw !== null ? readable(raw, value) : value;
}

/** How an object is shown; fallback is for those that JSON knows itself. */
function readable(raw, fallback) {
  if (typeof raw.toDict === "function") {
    const { type, data } = raw.toDict();
    return { ...data, type };
  }
  if (raw instanceof Set) return [...raw];
  if (raw instanceof Map) return Object.fromEntries([...raw].map(([k, v]) => [typeof k === "string" ? k : String(k), v]));
  if (raw instanceof Error) return { error: raw.name, message: raw.message };
  if (ArrayBuffer.isView(raw)) return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("base64");
  return fallback;
}

function plain(value, above) {
  if (typeof value === "bigint") return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER ? Number(value) : value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (above.includes(value)) return "[circular]";
  const inside = [...above, value];
  try {
    const shown = readable(value, typeof value.toJSON === "function" ? value.toJSON() : value);
    if (typeof shown !== "object" || shown === null) return plain(shown, inside);
    if (Array.isArray(shown)) return shown.map((item) => plain(item, inside));
    return Object.fromEntries(Object.entries(shown).map(([k, v]) => [k, plain(v, inside)]));
  } catch (error) {
    return `[${describeError(error).message}]`;
  }
}
