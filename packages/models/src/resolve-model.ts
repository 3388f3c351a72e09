import { guardModel } from "./guarded-model.ts";
import { parseModelName } from "./model-name.ts";
import { checkOptions, resolveSettings } from "./provider-settings.ts";
import type { ResolveModelOptions } from "./provider-settings.ts";
import type { ResolvedModel } from "./resolved-model.ts";
import { shapedRequest } from "./request-shape.ts";
import { mayCutSilently } from "./silent-cut.ts";

/**
 * Gives the model of a name: `openai/…`, `anthropic/…`, `openai-compatible/…` or `demo/…`.
 *
 * Opens no connection; loads the chosen provider's SDK and undici on the first use of a network provider, and neither
 * for `demo/…`. Each resolved model has its own connections: close it. Rejects with a `ModelChoiceErrorCode`, or
 * `MODEL_NOT_FOUND` for an unknown demo model, whose message says what was wrong, what was expected and what to do.
 */
export async function resolveModel(name: string, options: ResolveModelOptions): Promise<ResolvedModel> {
  const { provider, modelId } = parseModelName(name);
  checkOptions(options);
  if (provider === "demo") {
    const { openDemoModel } = await import("./demo/demo-model.ts");
    return openDemoModel(modelId, options.host);
  }
  const settings = resolveSettings({ provider, modelId }, options);
  const [{ eventStream, openTransport }, { providerSdks }] = await Promise.all([
    import("./transport.ts"),
    import("./provider-sdk.ts"),
  ]);
  const transport = await openTransport(options.host.timers, settings);
  const { languageModel: inner, ...format } = await providerSdks[provider](modelId, settings, transport);
  const { silenceMs, traits, subject } = settings;
  const shape = { traits, ...format };

  let isClosed = false;
  const close = async (): Promise<void> => {
    isClosed = true;
    await transport.close();
  };
  const languageModel = guardModel(inner, {
    subject,
    streamHeaders: { accept: eventStream },
    alwaysGivesReason: true,
    shape: (request) => shapedRequest(request, shape),
    mayCutSilently: mayCutSilently({ modelId, baseUrl: settings.baseUrl }),
    timers: options.host.timers,
    isClosed: () => isClosed,
  });
  const { contextWindowTokens, price } = traits;
  return {
    id: subject.id,
    languageModel,
    ...(silenceMs === undefined ? {} : { silenceMs }),
    ...(contextWindowTokens === undefined ? {} : { contextWindowTokens }),
    ...(price === undefined ? {} : { price }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
