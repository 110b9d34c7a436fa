// Packed data: base64 strings hold bits (most significant first), numbers, or compressed text.

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
export function bytes(text) { return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)); }

/** @param {string} text @returns {Promise<ArrayBuffer>} */
export async function inflateBytes(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Numbers of two bytes, compressed by zlib. @param {string} text */
export async function inflate(text) { return new Uint16Array(await inflateBytes(text)); }

/** JSON values, compressed by zlib. @param {string} text */
export async function inflateJson(text) { return JSON.parse(new TextDecoder().decode(await inflateBytes(text))); }

/** A function from the index of a bit to its value. @param {string} text @returns {(index: number) => number} */
export function bitsOf(text) {
  const packed = bytes(text);
  return (index) => (packed[index >> 3] >> (7 - (index & 7))) & 1;
}

/** @param {Object<string, any>} object @param {(value: any) => any} change */
export function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
