/** Streams in the wire formats of the providers, written by hand, so that each format is covered without recordings. */

const chunk = (delta: object, finishReason: string | null = null, rest: object = {}): string =>
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_790_000_000,
    model: "m-1",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...rest,
  });

const argumentsDelta = (index: number, text: string): object => ({
  tool_calls: [{ index, function: { arguments: text } }],
});

export const chatText: readonly string[] = [
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Grüße" }),
  chunk({ content: ", 世界" }),
  chunk({ content: "!" }),
  chunk({}, "stop"),
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_790_000_000,
    model: "m-1",
    choices: [],
    usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14, prompt_tokens_details: { cached_tokens: 4 } },
  }),
];

/** Reasoning, then two calls whose arguments come in pieces that alternate, a surrogate pair cut in two by escapes. */
export const chatCalls: readonly string[] = [
  chunk({ role: "assistant", content: null, reasoning_content: "Two files" }),
  chunk({ reasoning_content: " are wanted." }),
  chunk({ tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "read_file", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "read_file", arguments: "" } }] }),
  chunk(argumentsDelta(0, '{"pa')),
  chunk(argumentsDelta(1, '{"path":"b')),
  chunk(argumentsDelta(0, 'th":"a\\ud83d')),
  chunk(argumentsDelta(1, '.md"}')),
  chunk(argumentsDelta(0, '\\ude00.md"}')),
  chunk({}, "tool_calls", {
    usage: {
      prompt_tokens: 30,
      completion_tokens: 21,
      total_tokens: 51,
      completion_tokens_details: { reasoning_tokens: 6 },
    },
  }),
];

const messageStart = JSON.stringify({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-x",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 40, cache_creation_input_tokens: 0, cache_read_input_tokens: 10, output_tokens: 1 },
  },
});

const block = (index: number, contentBlock: object, deltas: readonly object[]): string[] => [
  JSON.stringify({ type: "content_block_start", index, content_block: contentBlock }),
  ...deltas.map((delta) => JSON.stringify({ type: "content_block_delta", index, delta })),
  JSON.stringify({ type: "content_block_stop", index }),
];

/** Thinking with its signature, text and a call, with pings between. */
export const anthropicCall: readonly string[] = [
  messageStart,
  ...block(0, { type: "thinking", thinking: "", signature: "" }, [
    { type: "thinking_delta", thinking: "It asks" },
    { type: "thinking_delta", thinking: " for a file." },
    { type: "signature_delta", signature: "c2lnbmF0dXJl" },
  ]),
  JSON.stringify({ type: "ping" }),
  ...block(1, { type: "text", text: "" }, [
    { type: "text_delta", text: "I read" },
    { type: "text_delta", text: " it." },
  ]),
  ...block(2, { type: "tool_use", id: "toolu_1", name: "read_file", input: {} }, [
    { type: "input_json_delta", partial_json: "" },
    { type: "input_json_delta", partial_json: '{"path": "a' },
    { type: "input_json_delta", partial_json: '.md"}' },
  ]),
  JSON.stringify({
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 33 },
  }),
  JSON.stringify({ type: "message_stop" }),
];

export const anthropicText: readonly string[] = [
  messageStart,
  ...block(0, { type: "text", text: "" }, [
    { type: "text_delta", text: "Good" },
    { type: "text_delta", text: " day." },
  ]),
  JSON.stringify({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 3 },
  }),
  JSON.stringify({ type: "message_stop" }),
];

const response = (status: string, rest: object = {}): object => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  status,
  model: "gpt-x",
  service_tier: "default",
  ...rest,
});
const message = { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] };
const call = {
  id: "fc_1",
  type: "function_call",
  status: "in_progress",
  call_id: "call_1",
  name: "read_file",
  arguments: "",
};

/** OpenAI's Responses API: text and a call. */
export const responsesCall: readonly string[] = [
  { type: "response.created", response: response("in_progress") },
  { type: "response.output_item.added", output_index: 0, item: message },
  { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "I read" },
  { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: " it." },
  {
    type: "response.output_item.done",
    output_index: 0,
    item: { ...message, status: "completed", content: [{ type: "output_text", text: "I read it.", annotations: [] }] },
  },
  { type: "response.output_item.added", output_index: 1, item: call },
  { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1, delta: '{"path":' },
  { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1, delta: '"a.md"}' },
  { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 1, arguments: '{"path":"a.md"}' },
  {
    type: "response.output_item.done",
    output_index: 1,
    item: { ...call, status: "completed", arguments: '{"path":"a.md"}' },
  },
  {
    type: "response.completed",
    response: response("completed", {
      incomplete_details: null,
      usage: {
        input_tokens: 50,
        input_tokens_details: { cached_tokens: 8 },
        output_tokens: 17,
        output_tokens_details: { reasoning_tokens: 2 },
      },
    }),
  },
].map((event) => JSON.stringify(event));

export const chatChunk: typeof chunk = chunk;
