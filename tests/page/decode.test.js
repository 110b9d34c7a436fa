// Packed data: bits, numbers and compressed text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { bitsOf, bytes, inflate, inflateJson, mapValues } from "../../src/pisces/reports/page/decode.js";

const packed = (data) => Buffer.from(data).toString("base64");

test("bits are read with the most significant one first", () => {
  const bit = bitsOf(packed([0b10110000, 0b00000001]));
  assert.deepEqual([0, 1, 2, 3, 4, 15].map(bit), [1, 0, 1, 1, 0, 1]);
});

test("bytes and numbers of two bytes come back", async () => {
  assert.deepEqual([...bytes(packed([7, 255]))], [7, 255]);
  const numbers = Uint16Array.from([1, 300, 65535]);
  assert.deepEqual([...await inflate(packed(deflateSync(Buffer.from(numbers.buffer))))], [1, 300, 65535]);
});

test("compressed JSON keeps every letter", async () => {
  const value = { text: "</script> π ✓", list: [1, null] };
  assert.deepEqual(await inflateJson(packed(deflateSync(JSON.stringify(value)))), value);
  assert.deepEqual(mapValues({ a: 1, b: 2 }, (one) => one + 1), { a: 2, b: 3 });
});
