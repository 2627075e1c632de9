// Walks through two clients of ksqlDB: create, insert, stream in, pull, push, close. Prints what came of each step.
// Usage: node walk.js URL NAME

const KsqldbClient = require("ksqldb-client");
const Ksqldb = require("ksqldb-js");

const [url, name] = process.argv.slice(2);
const { hostname, port } = new URL(url);

async function until(ask, enough) {
  for (;;) {
    const found = await ask();
    if (enough(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const columns = "id INT KEY, v STRING";
const made = (prefix) =>
  `CREATE STREAM ${prefix} (${columns}) WITH (kafka_topic='${prefix}', format='JSON', partitions=1);`;
const table = (prefix) => `CREATE TABLE ${prefix}_T AS SELECT id, COUNT(*) AS n FROM ${prefix} GROUP BY id;`;

async function js(prefix) {
  const client = new Ksqldb({ ksqldbURL: url });
  const steps = {};
  steps.info = (await client.inspectServerInfo()).data.KsqlServerInfo.serverStatus;
  steps.created = (await client.ksql(made(prefix))).commandStatus.status;
  steps.table = (await client.ksql(table(prefix))).commandStatus.status;
  steps.inserted = await client.insertStream(prefix, [{ ID: 1, V: "a" }, { ID: 2, V: "b" }]);
  const pulled = await until(
    () => client.pull(`SELECT id, n FROM ${prefix}_T WHERE id = 2;`),
    (found) => found.length > 1,
  );
  steps.pulled = pulled.slice(1);
  const rows = [];
  const ready = new Promise((resolve) => {
    client.push(`SELECT * FROM ${prefix} EMIT CHANGES;`, (chunk) => {
      rows.push(JSON.parse(chunk));
      if (rows.length === 1) resolve(rows[0].queryId);
      if (rows.length === 2) got();
    });
  });
  let got;
  const received = new Promise((resolve) => { got = resolve; });
  const queryId = await ready;
  await client.insertStream(prefix, [{ ID: 3, V: "c" }]);
  await received;
  steps.pushed = rows[1];
  steps.closed = (await client.terminate(queryId))["@type"];
  try {
    await client.ksql("SELECT nothing;");
  } catch (error) {
    steps.refused = error.constructor.name;
  }
  return steps;
}

async function plain(prefix) {
  const client = new KsqldbClient({ host: `http://${hostname}`, port });
  await client.connect();
  const steps = {};
  steps.created = (await client.executeStatement(made(prefix))).status;
  steps.table = (await client.executeStatement(table(prefix))).status;
  steps.inserted = (await client.insertInto(prefix, { ID: 1, V: "a" })).status;
  const pulled = await until(
    () => client.query(`SELECT id, n FROM ${prefix}_T WHERE id = 1;`),
    ({ data }) => data.rows.length > 0,
  );
  steps.pulled = pulled.data.rows;
  let queryId;
  let got;
  const first = new Promise((resolve) => { got = resolve; });
  const done = client.streamQuery(`SELECT * FROM ${prefix} EMIT CHANGES;`, (data) => {
    queryId = data.metadata.queryId;
    got();
  });
  await first;
  steps.closed = (await client.terminatePushQuery(queryId)).status;
  steps.ended = (await done).status;
  steps.streams = (await client.listStreams()).some((stream) => stream.name === prefix);
  steps.refused = (await client.query("SELECT * FROM nowhere_at_all;")).error.error_code;
  await client.disconnect();
  return steps;
}

(async () => {
  console.log(JSON.stringify({ "ksqldb-js": await js(`${name}_JS`), "ksqldb-client": await plain(`${name}_C`) }));
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
