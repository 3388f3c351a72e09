import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { ModelErrorCode, ResolveModelOptions } from "@turnkeeper/models";
import { describeModelError, resolveModel } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";

const keys = { OPENAI_API_KEY: "key-1", ANTHROPIC_API_KEY: "key-2" };
const address = { "openai-compatible": { baseUrl: "http://127.0.0.1:8099/v1" } };

async function refusal(name: string, options: Partial<ResolveModelOptions> = {}): Promise<CodedError> {
  const error: unknown = await resolveModel(name, { host: systemHost, env: keys, ...options }).catch(
    (reason: unknown) => reason,
  );
  if (!CodedError.is(error)) throw new Error("expected a refusal", { cause: error });
  return error;
}

describe("a model's name", () => {
  it.each(["openai/gpt-5-mini", "anthropic/claude-x", "openai-compatible/meta-llama/Llama-3.3:free", "demo/tools"])(
    "%s is what the model is called",
    async (name) => {
      const model = await resolveModel(name, { host: systemHost, env: keys, providers: address });
      expect(model.id).toBe(name);
      expect(model.languageModel.modelId).toBe(name.slice(name.indexOf("/") + 1));
      await model.close();
    },
  );

  it.each<[string, ModelErrorCode, string]>([
    [
      "gpt-5",
      "MODEL_NAME_INVALID",
      'Cannot choose model "gpt-5": expected PROVIDER/MODEL, where PROVIDER is openai, anthropic, openai-compatible or demo; it has no slash.',
    ],
    ["", "MODEL_NAME_INVALID", "it has no slash"],
    ["openai/", "MODEL_NAME_INVALID", "nothing follows the slash"],
    ["openai/gpt 5", "MODEL_NAME_INVALID", "no white space"],
    ["openai/gpt\n5", "MODEL_NAME_INVALID", "no white space"],
    [`openai/${"x".repeat(300)}`, "MODEL_NAME_INVALID", "at most 256 characters"],
    ["/gpt-5", "MODEL_PROVIDER_UNKNOWN", 'unknown provider ""'],
    [
      "mistral/large",
      "MODEL_PROVIDER_UNKNOWN",
      'unknown provider "mistral", expected PROVIDER/MODEL, where PROVIDER is openai, anthropic',
    ],
    ["OpenAI/gpt-5", "MODEL_PROVIDER_UNKNOWN", "Did you mean openai/gpt-5?"],
    ["constructor/x", "MODEL_PROVIDER_UNKNOWN", 'unknown provider "constructor"'],
    [
      "local/llama",
      "MODEL_PROVIDER_RESERVED",
      "the provider local is reserved. For a server on this machine use openai-compatible/MODEL with its base_url.",
    ],
    ["demo/", "MODEL_NAME_INVALID", "nothing follows the slash"],
    ["demo/gpt", "MODEL_NOT_FOUND", "the choices are demo/tools, demo/echo, demo/slow, demo/silent."],
    ["demo/constructor", "MODEL_NOT_FOUND", "the choices are"],
  ])("%j is refused with %s", async (name, code, part) => {
    const error = await refusal(name);
    expect(error.code).toBe(code);
    expect(error.message).toContain(part);
    expect(error.message).not.toMatch(/\n/);
    expect(describeModelError(error)).toEqual({
      code,
      retryable: false,
      isOfRoute: code === "MODEL_NOT_FOUND",
      message: error.message,
    });
  });

  it("that is no text is refused", async () => {
    const name: unknown = 7;
    expect(await refusal(name as string)).toMatchObject({ code: "MODEL_NAME_INVALID" });
  });
});

describe("a key", () => {
  it.each([
    ["openai/gpt-5", "OPENAI_API_KEY"],
    ["anthropic/claude-x", "ANTHROPIC_API_KEY"],
  ])("for %s is named when it is missing or blank", async (name, variable) => {
    for (const env of [{}, { [variable]: "" }, { [variable]: "  \n" }]) {
      const error = await refusal(name, { env });
      expect(error.code).toBe("MODEL_KEY_MISSING");
      expect(error.message).toContain(
        `Cannot use ${name}: it needs a key in the environment variable ${variable}, which is not set. Set it, or try demo/tools`,
      );
    }
  });

  it("may come from the variable that the settings name", async () => {
    const providers = { openai: { apiKeyEnv: "WORK_KEY" } };
    expect((await refusal("openai/gpt-5", { providers })).message).toContain("environment variable WORK_KEY");
    await (await resolveModel("openai/gpt-5", { host: systemHost, env: { WORK_KEY: "key-1" }, providers })).close();
  });

  it("is not read from the process's own environment", async () => {
    process.env["OPENAI_API_KEY"] = "ambient";
    try {
      expect(await refusal("openai/gpt-5", { env: {} })).toMatchObject({ code: "MODEL_KEY_MISSING" });
    } finally {
      delete process.env["OPENAI_API_KEY"];
    }
  });

  it("that no header can carry is refused by its name", async () => {
    for (const value of ["kéy", "two words", "line\nbreak", "“quoted”"]) {
      expect(await refusal("openai/gpt-5", { env: { OPENAI_API_KEY: value } })).toMatchObject({
        code: "MODEL_KEY_INVALID",
        message: expect.stringContaining("OPENAI_API_KEY") as string,
      });
    }
  });

  it("is not needed by a compatible server", async () => {
    await (await resolveModel("openai-compatible/m", { host: systemHost, providers: address })).close();
    await (
      await resolveModel("openai-compatible/m", {
        host: systemHost,
        providers: { "openai-compatible": { ...address["openai-compatible"], apiKeyEnv: "UNSET_KEY" } },
      })
    ).close();
  });
});

describe("a base URL", () => {
  it("is asked for where there is no default", async () => {
    const error = await refusal("openai-compatible/llama3");
    expect(error.code).toBe("MODEL_BASE_URL_MISSING");
    expect(error.message).toBe(
      "Cannot use openai-compatible/llama3: it needs providers.openai-compatible.base_url, the address of the server, for example http://127.0.0.1:11434/v1.",
    );
  });

  it.each([
    "127.0.0.1:11434",
    "localhost",
    "ftp://127.0.0.1",
    "http://",
    "http://127.0.0.1:99999/v1",
    "http://user:pass@127.0.0.1/v1",
    "http://127.0.0.1/v1?key=1",
    "http://127.0.0.1/#v1",
  ])("%s is refused, named by where it came from", async (baseUrl) => {
    const fromSettings = await refusal("openai-compatible/m", { providers: { "openai-compatible": { baseUrl } } });
    expect(fromSettings).toMatchObject({
      code: "MODEL_BASE_URL_INVALID",
      message: expect.stringContaining(
        "providers.openai-compatible.base_url is no usable base URL: expected http:// or https://",
      ) as string,
    });
    expect(fromSettings.message).not.toContain("pass");
    const fromEnvironment = await refusal("openai/m", { env: { ...keys, OPENAI_BASE_URL: baseUrl } });
    expect(fromEnvironment.message).toContain("OPENAI_BASE_URL is no usable base URL");
  });

  it("a port that fetch refuses to speak to is named, before anything is sent", async () => {
    const error = await refusal("openai/m", { env: { ...keys, OPENAI_BASE_URL: "http://127.0.0.1:6000/v1" } });
    expect(error).toMatchObject({
      code: "MODEL_BASE_URL_INVALID",
      message: expect.stringContaining("port 6000") as string,
    });
  });
});

describe("options", () => {
  it.each<[string, object, string]>([
    [
      "an unknown one",
      { silenceSeconds: 3 },
      "Option silenceSeconds is unknown; expected one of host, env, providers, models, silenceMs, graceMs.",
    ],
    [
      "an unknown provider's",
      { providers: { opnai: {} } },
      "Option providers.opnai is unknown; expected one of openai, anthropic, openai-compatible.",
    ],
    [
      "an unknown setting of a provider",
      { providers: { openai: { base_url: "x" } } },
      "Option providers.openai.base_url is unknown; expected one of baseUrl, apiKeyEnv, credential, silenceMs, contextWindowTokens, api.",
    ],
    [
      "a bound that is no number",
      { silenceMs: Number.NaN },
      "Option silenceMs must be a finite number of milliseconds, at least 1, got NaN.",
    ],
    ["an endless bound", { silenceMs: Number.POSITIVE_INFINITY }, "got Infinity"],
    ["a bound of nothing", { providers: { openai: { silenceMs: 0 } } }, "Option providers.openai.silenceMs must be"],
    [
      "a negative grace",
      { graceMs: -1 },
      "Option graceMs must be a finite number of milliseconds, at least 0, got -1.",
    ],
    [
      "an unknown API",
      { providers: { openai: { api: "assistants" } } },
      'Option providers.openai.api must be "chat" or "responses", got "assistants".',
    ],
  ])("are checked: %s is refused", async (_what, options, message) => {
    const error = await refusal("openai/m", options);
    expect(error).toMatchObject({ code: "MODEL_OPTION_INVALID" });
    expect(error.message).toContain(message);
  });
});
