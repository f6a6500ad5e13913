// The binary of a timeline: a magic word, a JSON header, columns of numbers. `columns.py` writes it and says why so.

const MAGIC = "CZTL0001";
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };

// Undoes gzip; bytes that are not compressed are returned as they are.
export async function inflate(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Header and columns by name. Times come as Float64Array, from the start of the run; names stay text.
export function decode(bytes) {
  const magic = String.fromCharCode(...bytes.subarray(0, 8));
  if (magic !== MAGIC) throw new Error("not a timeline of this version");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerLength = view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + headerLength)));
  // Columns are aligned to 8 bytes in the binary; a view on bytes that are not needs a copy.
  const whole = bytes.byteOffset % 8 ? bytes.slice() : bytes;
  const base = 16 + headerLength;
  const columns = {};
  for (const { name, type, offset, count } of header.columns) {
    const Kind = TYPES[type];
    if (!Kind || base + offset + count * Kind.BYTES_PER_ELEMENT > whole.byteLength) throw new Error(`damaged column ${name}`);
    columns[name] = new Kind(whole.buffer, whole.byteOffset + base + offset, count);
  }
  for (const { name, segments } of header.columns) {
    if (segments) columns[name] = summed(columns[name], columns[`${segments}_first`], columns[`${segments}_count`]);
  }
  return { header, columns };
}

// Running sums of differences, begun anew in each segment.
function summed(differences, firsts, counts) {
  const sums = new Float64Array(differences.length);
  for (let segment = 0; segment < firsts.length; segment++) {
    let sum = 0;
    for (let place = firsts[segment], end = place + counts[segment]; place < end; place++) {
      sum += differences[place];
      sums[place] = sum;
    }
  }
  return sums;
}
