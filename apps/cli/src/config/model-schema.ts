import { z } from "zod";
import type { ModelConfig, ProviderConfig } from "./config.ts";
import { seconds } from "./seconds.ts";

/** What config.yaml may say of providers and models. */

export const modelName = (): z.ZodString => z.string().regex(/^[^/\s]+\/\S+$/, "expected PROVIDER/MODEL");
const tokenCount = (): z.ZodInt => z.int().positive();
const priceOfTokens = (): z.ZodNumber => z.number().min(0);

const oauth = z
  .strictObject({
    token_url: z.url({ protocol: /^https?$/ }).describe("Where tokens are refreshed (OAuth 2.0)."),
    client_id: z.string().min(1),
    client_secret_env: z.string().min(1).optional().describe("Name of the variable that holds the client's secret."),
    scope: z.string().min(1).optional(),
    token_file: z
      .string()
      .min(1)
      .optional()
      .describe("JSON with access_token and refresh_token, mode 0600. Default: tokens/PROVIDER.json in the home."),
  })
  .describe("Tokens in place of a key, refreshed when they are refused or about to expire.");

export const model: z.ZodType<ModelConfig> = z.strictObject({
  context_window: tokenCount().optional().describe("How many tokens one request and its answer may have together."),
  max_output: tokenCount().optional().describe("How many tokens one answer may have."),
  price: z
    .strictObject({
      input: priceOfTokens(),
      output: priceOfTokens(),
      cached_input: priceOfTokens().optional(),
      cache_write: priceOfTokens().optional(),
    })
    .optional()
    .describe("Of a million tokens, in whatever currency."),
  tools: z.boolean().optional().describe("false: the model refuses tools."),
  system: z.boolean().optional().describe("false: the model refuses a system message."),
  parallel_calls: z.boolean().optional().describe("false: the model is asked for one call at a time."),
  output_limit_field: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  cache: z.enum(["key", "conversation-header", "breakpoints", "none"]).optional(),
});

export const provider: z.ZodType<ProviderConfig> = z.strictObject({
  base_url: z.string().min(1).optional().describe("Where the API is, up to and without the path of a call."),
  api_key_env: z.string().min(1).optional().describe("Name of the environment variable that holds the key."),
  silence_s: seconds()
    .optional()
    .describe("Longest silence of one model wait. Default: agent.turn_liveness.timeout_s."),
  context_window: z
    .int()
    .positive()
    .optional()
    .describe("How many tokens one request and its answer may have together. Default: unknown."),
  oauth: oauth.optional(),
  api: z.enum(["chat", "responses"]).optional().describe("Which of OpenAI's two APIs to speak; for openai only."),
});
