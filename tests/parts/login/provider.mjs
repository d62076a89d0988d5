// A real provider of identities (npm's oidc-provider) for tests: any name is a login, its groups are set by the test.
// Arguments: its port, and the URL of the server that people log in to.
import Provider from "oidc-provider";

const [port, remit] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const groups = { ann: ["payments"], bob: [] };

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "remit",
      client_secret: "a secret of the test & more",
      redirect_uris: [`${remit}/login/provider/callback`],
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      backchannel_logout_uri: `${remit}/login/provider/ended`,
      backchannel_logout_session_required: true,
    },
  ],
  claims: { openid: ["sub"], groups: ["groups"], profile: ["name"] },
  scopes: ["openid", "profile", "groups", "offline_access"],
  conformIdTokenClaims: process.env.USERINFO === "1",
  cookies: { keys: ["a key of the test"] },
  features: {
    backchannelLogout: { enabled: true },
    deviceFlow: { enabled: true },
    rpInitiatedLogout: { enabled: true },
  },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: id, groups: groups[id] ?? [] }),
  }),
  // Its own refuses loopback, to which a server of a test listens.
  fetch: (url, options) => globalThis.fetch(url, { method: options.method, headers: options.headers, body: options.body }),
});

provider.use(async (context, next) => {
  const set = context.path.match(/^\/test\/groups\/(\w+)\/([\w,]*)$/);
  if (!set) return next();
  groups[set[1]] = set[2] ? set[2].split(",") : [];
  context.body = "ok";
});

provider.listen(Number(port), "127.0.0.1", () => console.log(issuer));
