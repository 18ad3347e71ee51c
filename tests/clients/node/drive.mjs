// Drives openai-node and the AI SDK against a server, one job a line of standard input, one outcome a line of output.
//
// A job: {id, client, mode, url, key, model, input, tool, schema, image, retries}. An outcome says in the same words for all clients
// what a user of that client is shown: {text, refusal, reasoning, calls, status, reason, usage, object, error}.
import readline from "node:readline";
import OpenAI from "openai";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const PLACE = z.object({ city: z.string(), people: z.number() });
const SUNNY = "sunny";
const FORMAT = {
  type: "json_schema",
  name: "place",
  strict: true,
  schema: {
    type: "object",
    properties: { city: { type: "string" }, people: { type: "integer" } },
    required: ["city", "people"],
    additionalProperties: false,
  },
};
const empty = () => ({
  text: "", refusal: "", reasoning: "", calls: [], status: null, reason: null, usage: null, object: null, error: null,
});
const failed = (error) => ({
  status: error?.status ?? error?.statusCode ?? null,
  code: error?.code ?? error?.data?.error?.code ?? null,
  message: String(error?.message ?? error).slice(0, 300),
});
const usageOf = (usage) => (usage ? [usage.input_tokens, usage.output_tokens, usage.total_tokens] : null);

function ofResponse(response) {
  const out = empty();
  for (const item of response.output) {
    if (item.type === "message")
      for (const part of item.content) {
        if (part.type === "output_text") out.text += part.text;
        if (part.type === "refusal") out.refusal += part.refusal;
      }
    if (item.type === "reasoning") out.reasoning += item.summary.map((part) => part.text).join("");
    if (item.type === "function_call") out.calls.push([item.name, item.arguments]);
  }
  out.status = response.status;
  out.reason = response.incomplete_details?.reason ?? null;
  out.usage = usageOf(response.usage);
  if (response.error) out.error = { status: null, code: response.error.code, message: response.error.message };
  return out;
}

function paramsOf(job) {
  const params = { model: job.model, input: job.input };
  if (job.image)
    params.input = [
      { role: "user", content: [{ type: "input_text", text: job.input }, { type: "input_image", image_url: job.image, detail: "auto" }] },
    ];
  if (job.tool) params.tools = [job.tool];
  if (job.schema) params.text = { format: FORMAT };
  return params;
}

// --- openai-node -----------------------------------------------------------------------------------------------------

async function withTools(params, respond) {
  // Answers calls until there are none, as users of the client write it.
  const calls = [];
  for (let turn = 0; turn < 4; turn++) {
    const response = await respond(params);
    const found = response.output.filter((item) => item.type === "function_call");
    calls.push(...found.map((item) => [item.name, item.arguments]));
    if (!found.length || response.status !== "completed" || !params.tools) {
      const outcome = ofResponse(response);
      return { ...outcome, calls, object: response.output_parsed ?? null };
    }
    const input = Array.isArray(params.input) ? params.input : [{ role: "user", content: params.input }];
    const answers = found.map((item) => ({ type: "function_call_output", call_id: item.call_id, output: SUNNY }));
    params = { ...params, input: [...input, ...response.output, ...answers] };
  }
  throw new Error("the model never stopped calling");
}

const OPENAI = {
  create: (client) => (params) => client.responses.create(params),
  stream: (client) => async (params) => {
    let last = null;
    for await (const event of await client.responses.create({ ...params, stream: true }))
      if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) last = event.response;
    if (!last) throw new Error("the stream has no terminal event");
    return last;
  },
  helper: (client) => (params) => client.responses.stream(params).finalResponse(),
  parse: (client) => (params) => client.responses.parse(params),
  background: (client) => async (params) => {
    let response = await client.responses.create({ ...params, background: true });
    while (["queued", "in_progress"].includes(response.status)) {
      await new Promise((done) => setTimeout(done, 50));
      response = await client.responses.retrieve(response.id);
    }
    return response;
  },
  resumed: (client) => async (params) => {
    let id, number;
    for await (const event of await client.responses.create({ ...params, background: true, stream: true })) {
      id ??= event.response.id;
      number = event.sequence_number;
      if (number === 1) break; // which closes the connection
    }
    let last = null;
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: number }))
      if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) last = event.response;
    if (!last) throw new Error("the stream has no terminal event");
    return last;
  },
};

async function openai(job) {
  const client = new OpenAI({ baseURL: job.url, apiKey: job.key, maxRetries: job.retries ?? 0, timeout: 30000 });
  return withTools(paramsOf(job), OPENAI[job.mode](client));
}

// --- AI SDK ----------------------------------------------------------------------------------------------------------

async function aisdk(job) {
  const model = createOpenAI({ baseURL: job.url, apiKey: job.key }).responses(job.model);
  const content = job.image ? [{ type: "text", text: job.input }, { type: "image", image: job.image }] : job.input;
  const asked = { model, messages: [{ role: "user", content }], maxRetries: job.retries ?? 0 };
  if (job.schema) {
    const { object } = await generateObject({ ...asked, schema: PLACE });
    return { ...empty(), object, status: "completed" };
  }
  const calls = [];
  if (job.tool) {
    const { name, description, parameters } = job.tool;
    asked.tools = { [name]: tool({ description, inputSchema: jsonSchema(parameters), execute: async () => SUNNY }) };
    asked.stopWhen = stepCountIs(4);
  }
  const out = empty();
  let wrong = null;
  const result =
    job.mode === "stream" ? streamText({ ...asked, onError: ({ error }) => (wrong ??= error) }) : await generateText(asked);
  if (job.mode === "stream")
    for await (const part of result.fullStream) {
      if (part.type === "error") wrong ??= part.error;
      if (part.type === "tool-call") calls.push([part.toolName, JSON.stringify(part.input)]);
    }
  if (wrong) throw wrong;
  const steps = await result.steps;
  if (job.mode !== "stream")
    for (const step of steps) for (const call of step.toolCalls) calls.push([call.toolName, JSON.stringify(call.input)]);
  const usage = await result.usage;
  return {
    ...out,
    calls,
    text: await result.text,
    reasoning: steps.map((step) => step.reasoningText ?? "").join(""),
    status: { stop: "completed", "tool-calls": "completed", length: "incomplete", "content-filter": "incomplete" }[await result.finishReason] ?? "failed",
    reason: { length: "max_output_tokens", "content-filter": "content_filter" }[await result.finishReason] ?? null,
    usage: usage.inputTokens == null ? null : [usage.inputTokens, usage.outputTokens, usage.totalTokens],
  };
}

const CLIENTS = { openai, aisdk };

for await (const line of readline.createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  let outcome;
  try {
    outcome = await CLIENTS[job.client](job);
  } catch (error) {
    outcome = { ...empty(), error: failed(error) };
  }
  process.stdout.write(JSON.stringify({ job: job.id, ...outcome }) + "\n");
}
process.exit(0);
