import { setTimeout as pause } from "node:timers/promises";

/** How long closing may take: a socket that was ended, a process that was killed. What stays longer is left behind. */
const patienceMs = 2000;
/** The timers of the test runner are among these; those of a test are watched one by one. */
const notHandles = new Set(["Timeout", "Immediate"]);

/** Every timer that is set from here on through the globals; the test runner keeps its own. */
const timers = new Set();
for (const name of ["setTimeout", "setInterval"]) {
  const original = globalThis[name];
  const watched = (...args) => {
    const timer = original(...args);
    timers.add(timer);
    return timer;
  };
  globalThis[name] = Object.defineProperties(watched, Object.getOwnPropertyDescriptors(original));
}

function counted(names) {
  const counts = new Map();
  for (const name of names) if (!notHandles.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** What is there before a test: handles that keep the process alive, by kind, and the listeners of each process event. */
export function baseline() {
  timers.clear();
  return {
    handles: counted(process.getActiveResourcesInfo()),
    listeners: new Map(process.eventNames().map((name) => [name, process.listenerCount(name)])),
  };
}

function more(kind, now, before) {
  return [...now].flatMap(([name, count]) => {
    const extra = count - (before.get(name) ?? 0);
    return extra > 0 ? [`${extra} ${kind} ${String(name)}`] : [];
  });
}

function found(before) {
  const armedCount = [...timers].filter((timer) => !timer._destroyed && timer.hasRef()).length;
  return [
    ...(armedCount > 0 ? [`${armedCount} armed timer`] : []),
    ...more("open", counted(process.getActiveResourcesInfo()), before.handles),
    ...more(
      "listener of process event",
      process.eventNames().map((name) => [name, process.listenerCount(name)]),
      before.listeners,
    ),
  ];
}

/** What is there beyond `before`, once closing has had its time; empty as soon as nothing is. */
export async function leftovers(before) {
  for (let waitedMs = 0; ; waitedMs += 10) {
    const left = found(before);
    if (left.length === 0 || waitedMs >= patienceMs) return left;
    await pause(10, undefined, { ref: false });
  }
}
