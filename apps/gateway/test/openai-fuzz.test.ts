import { scriptedModel } from "@turnkeeper/agent-core/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openGateway, post } from "./inside/open-gateway.ts";

const model = "scripted/model";
const text = fc.oneof(fc.string(), fc.constantFrom("", " ", "\ud800", "\u0000", "x".repeat(3000)));
const odd = fc.oneof(text, fc.constantFrom(null, 0, -1, 1e300, true, [], {}), fc.jsonValue() as fc.Arbitrary<unknown>);
const callId = fc.constantFrom("a", "b", "__proto__", "");

/** A field mostly as it should be, so that what is behind the schema is reached too. */
const mostly = <Value>(right: fc.Arbitrary<Value>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 40, arbitrary: right as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: odd });

const words = fc.constantFrom("Good morning", "Weather?");
const content = fc.oneof(
  words,
  text,
  fc.array(fc.record({ type: fc.constantFrom("text", "input_text", "image_url"), text })),
);
const toolCall = fc.record({
  id: callId,
  type: fc.constant("function"),
  function: fc.record({
    name: fc.constantFrom("weather", "toString"),
    arguments: fc.oneof(text, fc.constant('{"a":1}')),
  }),
});
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "user", "system", "developer"), content: mostly(content) }),
  fc.record(
    { role: fc.constant("assistant"), content: mostly(content), tool_calls: fc.array(toolCall, { maxLength: 2 }) },
    { requiredKeys: ["role"] },
  ),
  fc.record({ role: fc.constant("tool"), content: mostly(content), tool_call_id: callId }),
);
/** Some that anything may stand in, and some that a client would send. */
const conversation = (one: fc.Arbitrary<unknown>): fc.Arbitrary<unknown[]> => {
  const users = fc.array(fc.record({ role: fc.constant("user"), content: words }), { minLength: 1, maxLength: 3 });
  return fc.oneof(fc.array(one, { minLength: 1, maxLength: 5 }), users as fc.Arbitrary<unknown[]>);
};
const chatTool = fc.record({
  type: fc.constant("function"),
  function: fc.record({ name: fc.constantFrom("weather", "toString", "__proto__"), parameters: mostly(fc.object()) }),
});
const settings = {
  temperature: mostly(fc.double({ min: 0, max: 2, noNaN: true })),
  tool_choice: mostly(fc.constantFrom("auto", "none", "required")),
  store: mostly(fc.boolean()),
  stream: mostly(fc.boolean()),
};
const chatBody = fc.record(
  {
    ...settings,
    model: fc.constant(model),
    messages: mostly(conversation(message)),
    tools: mostly(fc.uniqueArray(chatTool, { maxLength: 2, selector: (one) => one.function.name })),
    max_tokens: mostly(fc.integer({ min: 1, max: 9 })),
    stop: mostly(fc.array(text, { maxLength: 4 })),
    response_format: mostly(fc.constantFrom({ type: "json_object" }, { type: "text" })),
  },
  { requiredKeys: ["model", "messages"] },
);
const item = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "user", "assistant", "system"), content: mostly(content) }),
  fc.record({ type: fc.constant("function_call"), call_id: callId, name: fc.constant("weather"), arguments: text }),
  fc.record({ type: fc.constant("function_call_output"), call_id: callId, output: mostly(content) }),
);
const responseBody = fc.record(
  {
    ...settings,
    model: fc.constant(model),
    input: mostly(fc.oneof(words, text, conversation(item))),
    instructions: mostly(text),
    previous_response_id: mostly(fc.constantFrom(null, "resp_", "resp_W10", "resp_WyIuLiIsIngiXQ")),
    max_output_tokens: mostly(fc.integer({ min: 1, max: 9 })),
  },
  { requiredKeys: ["model", "input"] },
);
/** What a header may have in it at all. */
const header = fc.string({
  unit: fc.constantFrom("a", "B", "7", ".", "/", "~", "é", ":"),
  minLength: 1,
  maxLength: 12,
});
const headers = fc.record(
  {
    "x-session-id": fc.oneof(fc.constantFrom("mine", "yours"), header),
    "x-session-key": header,
    "idempotency-key": fc.oneof(fc.constantFrom("k1", "k2"), header),
    "x-on-busy": fc.constantFrom("wait", "reject", "reject", "sometimes"),
  },
  { requiredKeys: [] },
);
const request = fc.oneof(
  fc.record({ path: fc.constant("chat/completions"), body: chatBody, headers }),
  fc.record({ path: fc.constant("responses"), body: responseBody, headers }),
);

const said = [{ role: "user", content: "Good morning" }];
const examples: [{ path: string; body: Record<string, unknown>; headers: Record<string, string> }][] = [
  [{ path: "chat/completions", body: { model, messages: said }, headers: {} }],
  [{ path: "responses", body: { model, input: said }, headers: {} }],
  [{ path: "chat/completions", body: { model, messages: [] }, headers: {} }],
  [{ path: "responses", body: { model, input: [] }, headers: {} }],
];

test("no body and no header of any request is the gateway's own failure", async () => {
  // Each answers something: words, or calls of the client's tool where there is one.
  let count = 0;
  const steps = Array.from(
    { length: 400 },
    () =>
      ({ tools = [] }: { readonly tools?: readonly unknown[] | undefined }) =>
        tools.length > 0 && count++ % 2 === 0
          ? { calls: [{ id: "a", name: "weather", input: {} }] }
          : { text: "Well." },
  );
  const gateway = await openGateway([], {}, { model: scriptedModel(steps, model) });
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(request, async ({ path, body, headers: given }) => {
      const answer = await post(`${gateway.url}/v1/${path}`, body, given);
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      const told = await answer.text();
      expect(answer.status).not.toBe(500);
      expect(told).not.toContain('"code":"internal"');
      if (answer.status >= 400) expect(JSON.parse(told)).toMatchObject({ error: { type: expect.any(String) } });
    }),
    { numRuns: 80, examples },
  );
  // What the examples reach at least, whatever is drawn beside them.
  expect(seen.get(200) ?? 0).toBeGreaterThan(1);
  expect(seen.get(400) ?? 0).toBeGreaterThan(1);
});
