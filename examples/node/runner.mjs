// A runner of TOOL tickets in JavaScript: `node runner.mjs` with Node 20.3 or newer, and nothing to install.
// It leases tickets, has their steps run through the gateway of the server, and completes, fails or blocks them.
// REMIT_URL names the server, or what balances several; REMIT_TOKEN a token with the scopes `work` and `call`.
import { setTimeout as pause } from "node:timers/promises";

const url = process.env.REMIT_URL ?? "http://127.0.0.1:8320";
const owner = process.env.REMIT_OWNER ?? `node-${process.pid}`;
const AT_ONCE = 8, LEASE_S = 60, WAIT_S = 20, PATIENCE_S = Number(process.env.REMIT_PATIENCE_S ?? 60);
const LOST = new Set(["lease_owner_mismatch", "lease_conflict", "not_found"]);
const stop = new AbortController(), working = new Set();
// Node may never settle a fetch whose connection was closed at once, and would end then: this keeps it, and ask() gives up in time.
const awake = setInterval(() => {}, 60_000);
for (const name of ["SIGTERM", "SIGINT"]) process.once(name, () => stop.abort());

// One request; what fails for now, such as a server that is replaced, is asked again after as long as it says.
async function ask(method, path, body, signal) {
  for (;;) {
    let seconds = 1;
    try {
      const headers = { "content-type": "application/json" };
      if (process.env.REMIT_TOKEN) headers.authorization = `Bearer ${process.env.REMIT_TOKEN}`;
      const patience = AbortSignal.any([AbortSignal.timeout(PATIENCE_S * 1000), ...(signal ? [signal] : [])]);
      const answer = await fetch(url + path, { method, headers, signal: patience, body: body && JSON.stringify(body) });
      const value = await answer.json();
      if (answer.ok) return value;
      if (![429, 502, 503, 504].includes(answer.status)) throw Object.assign(new Error(value.detail), { code: value.error_code });
      seconds = Number(answer.headers.get("retry-after") ?? 1);
    } catch (error) {
      if (signal?.aborted || typeof error.code === "string") throw error; // refused for good, or told to stop
    }
    await pause(seconds * 1000, undefined, { signal });
  }
}

// The lease is renewed while the steps run. A run is known by ticket and attempt: asked for again, it goes on.
async function work({ ticket, lease_token }) {
  const proof = { lease_owner: owner, lease_token }, at = `/v1/tickets/${ticket.id}`;
  const beat = setInterval(() => ask("POST", `${at}/renew`, { ...proof, lease_sec: LEASE_S }).catch(() => {}), LEASE_S * 333);
  const { tool_steps = ticket.tool_steps ?? [], tool_policy = {} } = ticket.metadata.tool_input ?? {};
  const run = { ticket_id: ticket.id, attempt: ticket.metadata.retry_count, tool_steps, tool_policy };
  try {
    const report = await ask("POST", "/v1/tools/execute", run);
    const outputs = { tool_verdict: report.tool_verdict, tool_context: { tool_trace: report.step_reports } };
    const end = { ...proof, outputs, code: report.code, reason: report.tool_verdict.reason || "see the report" };
    if (report.status === "ok") await ask("POST", `${at}/fill`, { ...proof, outputs });
    else if (report.status === "failed") await ask("POST", `${at}/fail`, end);
    else await ask("POST", `${at}/block`, { ...end, source: "runner" });
    console.log(ticket.id, report.status, report.code ?? "");
  } catch (error) {
    console.error(ticket.id, error.code ?? "", error.message);
    if (!LOST.has(error.code)) await ask("POST", `${at}/block`, { ...proof, code: error.code, reason: error.message, source: "runner" });
  } finally {
    clearInterval(beat);
  }
}

while (!stop.signal.aborted) {
  try {
    const leases = await ask("POST", "/v1/tickets/lease", { kind: "TOOL", owner, limit: AT_ONCE - working.size, lease_sec: LEASE_S }, stop.signal);
    for (const leased of leases) {
      const done = work(leased).catch((error) => console.error(leased.ticket.id, error.message)).finally(() => working.delete(done));
      working.add(done);
    }
    if (working.size >= AT_ONCE) await Promise.race(working);
    else if (!leases.length) await ask("GET", `/v1/tickets/free?type=TOOL&wait=${WAIT_S}`, undefined, stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error; // the token is refused, or this is no server of Remit
  }
}
await Promise.all(working); // what is leased is ended
clearInterval(awake);
