export { scriptedModel } from "./scripted-model.ts";
export type { ScriptedModel, ScriptedStep } from "./scripted-model.ts";
export { strictestProvider } from "./strictest-provider.ts";
