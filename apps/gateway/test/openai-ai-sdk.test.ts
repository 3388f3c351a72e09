import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { expect, test } from "vitest";
import { openGateway } from "./inside/open-gateway.ts";

test("the AI SDK's provider for OpenAI-compatible servers generates, streams and runs its tools", async () => {
  const scripted = scriptedModel([
    { text: "Good morning." },
    { text: "Good evening." },
    { text: "I will look.", calls: [{ name: "weather", input: { city: "Bonn" } }] },
    { text: "It rains in Bonn." },
  ]);
  const gateway = await openGateway([], {}, { model: scripted });
  const provider = createOpenAICompatible({ name: "turnkeeper", baseURL: `${gateway.url}/v1`, includeUsage: true });
  const model = provider("scripted/model");

  const generated = await generateText({ model, prompt: "Good morning" });
  expect([generated.text, generated.finishReason, generated.usage.totalTokens]).toEqual(["Good morning.", "stop", 15]);

  const streamed = streamText({ model, system: "Be kind.", prompt: "Good evening" });
  let text = "";
  for await (const delta of streamed.textStream) text += delta;
  expect([text, await streamed.finishReason, (await streamed.usage).totalTokens]).toEqual([
    "Good evening.",
    "stop",
    15,
  ]);

  const weather = tool({
    description: "The weather of a city.",
    inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
    execute: async ({ city }) => `rain in ${city}`,
  });
  const looked = await generateText({ model, tools: { weather }, stopWhen: stepCountIs(3), prompt: "Weather?" });
  expect(looked.text).toBe("It rains in Bonn.");
  expect(looked.steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
  // The model sees its own call with the client's result, and nothing that was made up between.
  expect(scripted.requests[3]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  expect(JSON.stringify(scripted.requests[3]?.prompt)).toContain("rain in Bonn");
  expect(scripted.requests[3]?.tools?.map(({ name }) => name)).toEqual(["weather"]);
  expect((await gateway.store.sessions.list()).sessions).toEqual([]);
});
