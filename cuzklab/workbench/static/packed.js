// Columns of numbers that came as bytes ({kind: bytes}; `packed.py` writes them) as typed arrays.

const KINDS_OF_NUMBERS = { u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

function numbers(column) {
  const [[kind, bytes]] = Object.entries(column);
  // What arrives is not aligned: a copy is.
  return new KINDS_OF_NUMBERS[kind](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

// What the chart draws, out of a picture: its columns as typed arrays, its texts as text.
function unpacked(picture) {
  const columns = (group) => Object.fromEntries(Object.entries(group).map(([name, column]) => [name, numbers(column)]));
  const texts = (places) => Array.from(places, (place) => picture.texts[place]);
  const waits = columns(picture.waits), { time, gib } = picture.vram;
  return {
    lanes: picture.lanes, names: picture.names, colours: picture.colours, texts: picture.texts, end_s: picture.end_s, bars: columns(picture.bars),
    waits: { ...waits, kind: texts(waits.kind), on: texts(waits.on), holder: texts(waits.holder) },
    vram: { ...picture.vram, time: numbers(time), gib: numbers(gib) },
  };
}
