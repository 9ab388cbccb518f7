// Bags of words: texts are similar if they have words in common.
import { createHash } from "node:crypto";

const SIZE = 1 * 256;

class ValueError extends Error {
  name = "ValueError";
}

export function embed(texts: string[]): number[][] {
  return texts.map(bag);
}

function bag(text: string): number[] {
  if (text.includes("unreadable")) throw new ValueError("this text cannot be embedded");
  const counts: number[] = new Array(SIZE).fill(0);
  for (const word of text.toLowerCase().split(/\s+/)) counts[createHash("sha256").update(word).digest()[0]]++;
  return counts;
}
