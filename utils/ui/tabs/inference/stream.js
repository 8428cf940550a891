chunk => {
  const state = window.amharicStream ??= { context: null, at: 0, key: "", played: -1 };
  if (!chunk) return;
  const { key, first, parts } = JSON.parse(chunk);
  if (state.key !== key) {
    state.context?.close();
    Object.assign(state, { context: new AudioContext({ sampleRate: RATE }), at: 0, key, played: -1, seconds: 0 });
  }
  parts.forEach((part, index) => {
    if (first + index <= state.played) return;
    state.played = first + index;
    const bytes = Uint8Array.from(atob(part), letter => letter.charCodeAt(0));
    const samples = new Int16Array(bytes.buffer);
    const buffer = state.context.createBuffer(1, samples.length, RATE);
    const channel = buffer.getChannelData(0);
    samples.forEach((value, position) => { channel[position] = value / 32768; });
    const source = state.context.createBufferSource();
    source.buffer = buffer;
    source.connect(state.context.destination);
    state.at = Math.max(state.at, state.context.currentTime + 0.05);
    source.start(state.at);
    state.at += buffer.duration;
    state.seconds += buffer.duration;
  });
}
