// Remit's guard: asks before every tool, and refuses the call on every failure. No module but node:net.
import net from "node:net"
const ask = (moment, message) => new Promise((resolve, reject) => {
  const body = Buffer.from(JSON.stringify(message)), length = Buffer.alloc(8)
  const socket = net.connect(SOCKET), starter = STARTER
  let answer = ""
  const stop = (why) => { socket.destroy(); reject(new Error(`remit guard: ${why}; the call is not made`)) }
  socket.setTimeout(SECONDS * 1000, () => stop("no answer in time"))
  socket.on("error", async () => {
    try {
      const child = Bun.spawnSync([...starter, `opencode.${moment}`], { stdin: body })
      child.exitCode === 0 ? resolve() : reject(new Error(child.stderr.toString().trim() || "remit guard: no answer"))
    } catch (error) { stop(String(error)) }
  })
  socket.on("data", (piece) => { answer += piece })
  socket.on("end", () => {
    if (answer[0] === "0" && answer.endsWith("\n")) { socket.destroy(); resolve() }
    else if (answer[0] === "2" && answer.endsWith("\n")) reject(new Error(answer.slice(1).trim()))
    else stop("an answer that cannot be read")
  })
  length.writeBigUInt64LE(BigInt(body.length))
  socket.write(Buffer.concat([Buffer.from(`opencode.${moment}\n`), length, body]))
})
export const RemitGuard = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => ask("before", { ...input, args: output.args, cwd: directory }),
  "tool.execute.after": async (input, output) =>
    ask("after", { ...input, cwd: directory, output: { output: output.output, metadata: output.metadata } }),
})
