// An OpenID Connect provider on loopback for the tests: anybody signs in by typing a name, and is in the groups that the name
// lists behind a `+`, such as `anna+ops+staff`. It prints its issuer when it serves.
//
// node provider.mjs <redirect uri> <audience>

import { createServer } from "node:http";

import Provider from "oidc-provider";

const [redirectUri, audience] = process.argv.slice(2);
const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "tocsin",
      client_secret: "a secret of the tests",
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [new URL("/login", redirectUri).href],
    },
    {
      client_id: "public",
      token_endpoint_auth_method: "none",
      redirect_uris: [redirectUri],
    },
    {
      client_id: "ops",
      client_secret: "a secret of a program",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  findAccount: (_, id) => {
    const [name, ...groups] = id.split("+");
    return { accountId: id, claims: () => ({ sub: id, email: `${name}@example.com`, groups }) };
  },
  claims: { openid: ["sub"], email: ["email"], profile: ["groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["of the tests"] },
  extraTokenClaims: (_, token) => (token.clientId === "ops" ? { groups: ["ops"] } : undefined),
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      defaultResource: () => audience,
      getResourceServerInfo: () => ({ scope: "", audience, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
    },
  },
  pkce: { required: () => true },
});
server.on("request", provider.callback());
console.log(issuer);
