import { DataError } from "./errors.mjs";

// The opaque data is a line of JSON that says what follows, and how long it is, and then the
// serialised values as they are: so two checkpoints differ where their values do, which is what the
// server stores of them.
const FORMAT = 1;

/**
 * @typedef {[type: string, bytes: Uint8Array]} Typed a value as the framework's serialiser has it
 */

/**
 * @param {object} head
 * @param {Typed[]} values
 * @returns {Buffer}
 */
export function join(head, values) {
  const line = JSON.stringify({ format: FORMAT, ...head, values: values.map(([type, bytes]) => [type, bytes.length]) });
  return Buffer.concat([Buffer.from(`${line}\n`), ...values.map(([, bytes]) => bytes)]);
}

/**
 * @param {Buffer} data
 * @returns {{head: any, values: Typed[]}}
 */
export function split(data) {
  const end = data.indexOf(10);
  let head;
  try {
    head = JSON.parse(data.subarray(0, Math.max(end, 0)).toString());
  } catch (error) {
    throw new DataError(error.message);
  }
  if (head?.format !== FORMAT) throw new DataError(`format ${head?.format} is not known`);
  let at = end + 1;
  const values = head.values.map(([type, length]) => [type, data.subarray(at, (at += length))]);
  if (at !== data.length) throw new DataError(`it has ${data.length} bytes, not ${at}`);
  return { head, values };
}
