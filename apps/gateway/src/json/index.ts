export { entryJson, inputJson, isoTime, recordsJson, sessionJson, turnJson } from "./session-json.ts";
export { sessionStateJson, turnStatusJson } from "./session-state-json.ts";
export { runningTurnJson } from "./running-turn-json.ts";
export { whatIsNext } from "./what-is-next.ts";
export { secondsText } from "./seconds-text.ts";
