export { entryJson, inputJson, isoTime, recordsJson, sessionJson, turnJson } from "./session-json.ts";
