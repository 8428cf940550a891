// Plays speech while it is generated. The value is JSON of the newest chunks; without any, no more will come, and the
// player gives way to the finished take once it has played what it has.
const audio = () => element.querySelector("audio");
const state = { context: null, at: 0, key: "", played: -1, left: 0, isComplete: true };
window.stopStream = () => {
  state.context?.close();
  Object.assign(state, { context: null, isComplete: true });
  audio().hidden = true;
};
const start = (key) => {
  stopStream();
  Object.assign(state, { context: new AudioContext({ sampleRate: RATE }), at: 0, key, played: -1, left: 0, isComplete: false });
  state.output = state.context.createMediaStreamDestination();
  audio().srcObject = state.output.stream;
  audio().hidden = false;
  audio().onpause = () => state.context?.suspend();
  audio().onplay = () => state.context?.resume();
  audio().play();
};
const finish = () => { if (state.isComplete && !state.left) stopStream(); };
const play = (part) => {
  const bytes = Uint8Array.from(atob(part), (letter) => letter.charCodeAt(0));
  const samples = new Int16Array(bytes.buffer), { context } = state;
  const buffer = context.createBuffer(1, samples.length, RATE);
  buffer.copyToChannel(Float32Array.from(samples, (value) => value / 32768), 0);
  const source = Object.assign(context.createBufferSource(), { buffer });
  source.connect(state.output);
  source.onended = () => { if (context === state.context) { state.left -= 1; finish(); } };
  state.at = Math.max(state.at, context.currentTime + 0.05);
  source.start(state.at);
  state.at += buffer.duration;
  state.left += 1;
};
watch("value", () => {
  if (!props.value) { state.isComplete = true; finish(); return; }
  const { key, first, parts } = JSON.parse(props.value);
  if (key !== state.key) start(key);
  if (!state.context) return;  // it was stopped
  parts.forEach((part, index) => { if (first + index > state.played) { play(part); state.played = first + index; } });
});
