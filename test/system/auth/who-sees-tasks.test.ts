import { OAuth2Server } from "oauth2-mock-server";
import { cleanUp } from "../../helpers/home.ts";
import { serverPort, urlOf } from "../../helpers/postgres.ts";
import { type TestIssuer, testWhoSeesTasks } from "../../helpers/who-sees-tasks.ts";

testWhoSeesTasks({ openStore: async () => urlOf(await serverPort()), startIssuer });

/** An authorization server from npm, which signs what the test wants. */
async function startIssuer(): Promise<TestIssuer> {
  const server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(0, "127.0.0.1");
  cleanUp(() => server.stop());
  const { issuer } = server;
  return {
    issuer: issuer.url as string,
    token: (claims) =>
      issuer.buildToken({
        scopesOrTransform: (_header, payload) => {
          Object.assign(payload, claims);
          for (const [name, value] of Object.entries(claims)) if (value === undefined) delete payload[name];
        },
      }),
  };
}
