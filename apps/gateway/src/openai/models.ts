import { Refusal } from "../refusal.ts";

/** `PROVIDER/MODEL` as the configuration names it, and as the provider does. */
function isOwnModel(modelId: string, asked: string): boolean {
  return asked === modelId || asked === modelId.slice(modelId.indexOf("/") + 1);
}

/** The demo stands in for whatever model there will be once there is a key, so a client's first program runs as it is. */
const standsInForAny = (modelId: string): boolean => modelId.startsWith("demo/");

/**
 * The name that an answer goes out under. A model that does not answer here is refused: another's answer under its name
 * would be a lie. The demo answers under its own.
 */
export function answeringModel(modelId: string, asked: string): string {
  if (isOwnModel(modelId, asked)) return asked;
  if (standsInForAny(modelId)) return modelId;
  const message = `There is no model ${JSON.stringify(asked.slice(0, 100))} here; ${modelId} answers.`;
  throw new Refusal(404, "model_not_found", message, { fields: [{ field: "model", message }] });
}

/** A model as `GET /v1/models` tells it; nobody here knows when it was made. */
export const modelOf = (modelId: string): object => ({
  id: modelId,
  object: "model",
  created: 0,
  owned_by: modelId.slice(0, Math.max(0, modelId.indexOf("/"))) || "turnkeeper",
});
