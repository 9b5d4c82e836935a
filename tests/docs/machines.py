"""The environment of each page, and which blocks are not run, with the reason."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """The environment before the first command of a page."""

    #: Whether the page itself puts `tocsin` on the PATH, as the first pages do; the others assume it.
    bare: bool = False
    #: Commands of terminals that are open already, such as a server that the page takes for granted.
    running: tuple[str, ...] = ()
    #: Commands that were typed before, in the reader's own terminal.
    before: str = ""
    #: Texts in blocks before which all servers are stopped, as the page instructs.
    stopped_before: tuple[str, ...] = ()
    #: The same, typed when those servers run.
    finds: str = ""
    #: What reads the page's SQL.
    sql: str = ""
    postgresql: bool = False
    mysql: bool = False
    #: DynamoDB Local, where the page has its endpoint.
    dynamodb: bool = False
    #: Cassandra, where the page has its address.
    cassandra: bool = False
    #: The stand-in for MongoDB, on MongoDB's port.
    mongodb: bool = False
    #: Whether nats-server is a command.
    nats: bool = False


_SERVE, _ECHO = "tocsin serve", "tocsin echo --port 9000"
#: Of a page that isn't named below.
USUAL = Machine(running=(_SERVE, _ECHO))
#: Of a page on which nothing is sent to the receiver.
_ONLY_SERVED = Machine(running=(_SERVE,))

#: A database of each kind, with a role that may do nothing elsewhere.
_POSTGRESQL = """
psql --quiet --dbname postgres --command "CREATE ROLE tocsin LOGIN PASSWORD 'secret'"
createdb --owner tocsin tocsin
"""
_PSQL = "psql --quiet --set ON_ERROR_STOP=1 --dbname tocsin"
_MYSQL = """
mysql --execute "CREATE USER tocsin IDENTIFIED BY 'secret'; CREATE DATABASE tocsin; GRANT ALL ON tocsin.* TO tocsin"
"""
#: A timer in a store, by a server that has ended when the page is read.
_TIMER_IN_STORE = """
(
  tocsin serve --port {port} --store {store}://tocsin:secret@db.internal/tocsin --log-level error & server=$!
  until curl --silent --fail --output /dev/null http://127.0.0.1:{port}/readyz; do sleep 0.1; done
  tocsin timers create http://127.0.0.1:9000/ --id invoice-4711 --in 1h --server http://127.0.0.1:{port}
  kill $server
  wait $server
) & {store}=$!
"""

MACHINES = {
    "README.md": Machine(bare=True),
    "docs/tutorial/first-timer.md": Machine(bare=True),
    "docs/tutorial/first-schedule.md": Machine(bare=True),
    "docs/tutorial/service-calls.md": Machine(bare=True),
    "docs/tutorial/your-own-store.md": Machine(),
    "docs/tutorial/order-reminder.md": Machine(before='export DATABASE_URL="sqlite:///$HOME/orders.db"\n'),
    "docs/tutorial/vendor-limit.md": Machine(),
    "docs/tutorial/leave-sqlite.md": Machine(before=_POSTGRESQL, postgresql=True),
    "docs/tutorial/incident.md": Machine(),
    "docs/how-to/backup.md": Machine(
        running=(_SERVE,),
        before=_POSTGRESQL
        + _MYSQL
        + _TIMER_IN_STORE.format(store="postgresql", port=8081)
        + _TIMER_IN_STORE.format(store="mysql", port=8082)
        + "wait $postgresql\nwait $mysql\n",
        stopped_before=("mv data data.before", "createdb --owner", "CREATE DATABASE tocsin_restored"),
        postgresql=True,
        mysql=True,
    ),
    "docs/how-to/batches.md": _ONLY_SERVED,
    "docs/how-to/capacity.md": _ONLY_SERVED,
    "docs/how-to/create-safely.md": _ONLY_SERVED,
    "docs/how-to/daylight-saving.md": _ONLY_SERVED,
    "docs/how-to/declare.md": _ONLY_SERVED,
    "docs/how-to/destinations.md": _ONLY_SERVED,
    "docs/how-to/encrypt-secrets.md": _ONLY_SERVED,
    "docs/how-to/monitor.md": _ONLY_SERVED,
    "docs/how-to/quotas.md": _ONLY_SERVED,
    "docs/how-to/translate-schedules.md": _ONLY_SERVED,
    "docs/how-to/upgrade.md": _ONLY_SERVED,
    "docs/how-to/read-by-hand.md": Machine(
        running=(_SERVE,),
        before=_POSTGRESQL
        + _MYSQL
        + _TIMER_IN_STORE.format(store="postgresql", port=8081)
        + _TIMER_IN_STORE.format(store="mysql", port=8082)
        + "wait $postgresql\nwait $mysql\n",
        postgresql=True,
        mysql=True,
    ),
    "docs/how-to/deploy.md": Machine(),
    "docs/how-to/move-store.md": Machine(
        running=(_SERVE,),
        before=_POSTGRESQL,
        stopped_before=("@db.internal/tocsin\n",),
        finds="""
tocsin namespaces create billing
for namespace in default billing; do
  tocsin timers create http://127.0.0.1:9000/ --namespace $namespace --id invoice-4711 --in 1h
  tocsin schedules create nightly http://127.0.0.1:9000/ --namespace $namespace --cron @daily
done
tocsin timers create http://127.0.0.1:9000/ --namespace billing --id invoice-4712 --in 1h
""",
        postgresql=True,
    ),
    "docs/how-to/inbox.md": Machine(
        running=(_ECHO,),
        before="""
psql --quiet --dbname postgres --command "CREATE ROLE shop LOGIN PASSWORD 'secret'"
createdb --owner shop shop
psql --quiet --dbname shop --command "CREATE TABLE orders (id int, item text)"
""",
        sql="psql --quiet --set ON_ERROR_STOP=1 --dbname shop",
        postgresql=True,
    ),
    "docs/how-to/idempotent-receivers.md": Machine(
        running=(_SERVE,),
        before=_POSTGRESQL + f'{_PSQL} --command "CREATE TABLE invoices (id bigint, reminded_at timestamptz)"\n',
        sql=_PSQL,
        postgresql=True,
    ),
    "docs/how-to/cassandra.md": Machine(cassandra=True),
    "docs/how-to/dynamodb.md": Machine(dynamodb=True),
    "docs/how-to/mongodb.md": Machine(mongodb=True),
    "docs/how-to/mysql.md": Machine(sql="mysql tocsin", mysql=True),
    "docs/how-to/postgresql.md": Machine(sql=_PSQL, postgresql=True),
    "docs/how-to/postgresql-agent.md": Machine(postgresql=True),
    "docs/how-to/mcp.md": Machine(),
    "docs/how-to/nats.md": Machine(nats=True),
    "docs/how-to/publish-to-nats.md": Machine(nats=True),
    "docs/how-to/publish-events.md": Machine(nats=True),
    "docs/how-to/notifications.md": Machine(
        running=(_SERVE, _ECHO),
        before="export SLACK_WEBHOOK_URL=http://127.0.0.1:9000/\n",
    ),
    "docs/how-to/secure.md": Machine(),
    # Installed beside the checkout's environment, without an index: what builds it is there already.
    "docs/sdks/python.md": Machine(
        before='export PIP_TARGET="$HOME/own" PIP_NO_DEPS=1 PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0\n'
    ),
    "docs/how-to/web-pages.md": Machine(),
    "docs/how-to/test-flows.md": Machine(),
    "docs/how-to/several-nodes.md": Machine(before=_POSTGRESQL, postgresql=True),
    "docs/how-to/verify-signatures.md": Machine(
        running=(_SERVE,), before="export TOCSIN_TENANT=$(tocsin calls new-tenant)\n"
    ),
    "docs/how-to/troubleshoot.md": Machine(
        running=(_SERVE, _ECHO), finds="tocsin timers create http://127.0.0.1:9000/ --id invoice-4711 --in 1s\n"
    ),
}

#: By page and a text in the block: why it is not run.
NOT_RUN = {
    "docs/tutorial/order-reminder.md": {
        "npm start": "the page has started a shop; sdks/typescript/tests/test_typescript_example.py starts this one",
        "go run .": "the same; sdks/go/tests/test_go_example.py",
        "mvn --quiet compile exec:java": "the same; sdks/java/tests/test_java_example.py",
    },
    "docs/explanation/performance.md": {
        "make bench": "measures for minutes",
    },
    "docs/how-to/credentials.md": {
        "keys signing --replace": "the page's server signs nothing; integration/server/test_credential_tokens.py does it",
    },
    "docs/how-to/dynamodb.md": {
        "aws dynamodb update-continuous-backups": "needs AWS: DynamoDB Local has no backups",
        "aws dynamodb update-table": "needs AWS's command line",
        "aws dynamodb create-table": "needs AWS's command line; test_dynamodb_units.py compares its arguments",
    },
    "docs/how-to/move-store.md": {
        "sqlite:///more": "the page has moved that store already; tests/crash/test_transfer.py changes the number",
        "--to-config": "the same",
        "--online": "the page has moved that store already; tests/crash/test_transfer_online.py moves one under traffic",
        "--cancel": "the same",
    },
    "docs/how-to/mongodb.md": {
        "mongodump": "needs MongoDB's tools",
    },
    "docs/how-to/backup.md": {
        "systemctl stop": "needs systemd; tests/deploy/test_restores.py types it",
        "docker compose": "needs Docker; tests/deploy/test_restores.py types it",
    },
    "docs/how-to/deploy.md": {
        "export PATH=": "is for root on such a machine; tests/deploy/test_systemd.py compares it with the unit",
        "create secret generic tocsin-metrics": "needs Kubernetes; tests/deploy/test_helm.py compares it with the values",
        ".venv/bin/pip install --editable": "needs a package registry",
        "python3 -m venv /opt/tocsin": "needs systemd; tests/deploy/test_systemd.py checks the unit",
        "install -d -m 0700 secrets": "needs Docker; `make test-image` runs the image",
        "docker buildx imagetools": "needs Docker and a registry of images",
        "docker compose --file compose.cluster.yaml up": "needs Docker; tests/deploy/test_compose.py runs processes",
        "kubectl create namespace": "needs Kubernetes; tests/deploy/test_helm.py renders the chart",
        "kubectl --namespace timers patch": "needs Kubernetes; tests/deploy/test_helm.py renders the chart with both secrets",
    },
    "docs/sdks/python.md": {
        "pip install tocsin-client": "needs a package registry",
        "python first_timer.py": "sdks/python/tests/test_docs.py runs all programs of the page",
    },
    "docs/sdks/java.md": {
        "mvn -q -f sdks/java/pom.xml": "needs Maven's plugins; test_sdk_installation.py types it where they are",
        "mvn -q compile org.codehaus.mojo:exec-maven-plugin": "sdks/java/tests/test_java_docs.py runs it with the built jars",
    },
    "docs/sdks/go.md": {
        "go mod init example": "sdks/go/tests/test_go.py makes the module, which has no release yet",
        "go get tocsin.dev/go": "sdks/go/tests/test_go.py makes the module, which has no release yet",
        "go mod edit -replace": "sdks/go/tests/test_go.py types it",
        "go run ./first-timer": "sdks/go/tests/test_go.py runs all programs of the page",
        "ADDRESS=127.0.0.1:9000 TOCSIN_SECRET=whsec_… go run ./reminders": "the same",
    },
    "docs/sdks/typescript.md": {
        "npm install tocsin-client": "needs a package registry",
        'npm install "$TOCSIN/sdks/typescript/': "npm ci needs packages; test_sdk_installation.py types it where they are",
        "node first-timer.mjs": "sdks/typescript/tests/test_typescript_docs.py runs all programs",
    },
    "docs/how-to/single-sign-on.md": {
        "Authorization: Bearer $ACCESS_TOKEN": "needs a provider; test_single_sign_on.py brings a token of a real one",
    },
    "docs/how-to/terraform.md": {
        "make terraform": "needs Go's modules; integrations/terraform's acceptance test builds and installs it",
        "terraform init": "the acceptance test applies the page's configuration",
        "terraform import": "the acceptance test imports its resources",
    },
    "docs/how-to/nats.md": {
        "nats sub": "NATS's own client, which only shows; tests/integration/messaging subscribes to the same subjects",
    },
}

#: What is done with blocks of other languages, beside the shell's.
TRIED = {
    "": "compared with what the commands before it print",
    "json": "read as JSON",
    "sql": "run by the database that the page is about",
    "toml": "checked by `tocsin config check`",
}
NOT_TRIED = {
    "ts": "a program of another system, shown to compare, or a part of an example",
    "cql": "roles, which take a server of Cassandra with passwords",
    "hcl": "a configuration that the acceptance test of the Terraform provider applies",
    "ini": "settings for a database server, sized for a real one; lines of a unit, which test_systemd.py checks",
    "js": "a program of the TypeScript SDK's page or of a guide, which the tests of the SDKs run",
    "nginx": "nginx is not among what tests may expect on a machine",
    "python": "a fragment, or a program of an SDK's page, which the SDK's tests run",
    "yaml": "settings for a server of Cassandra, a certificate, a workflow of a forge, a scrape that promtool checks, or "
    "values with which tests/deploy/test_helm.py renders the chart",
    "go": "a program of the Go SDK's page, which sdks/go/tests runs",
    "java": "a program of the Java SDK's page, which sdks/java/tests runs",
    "xml": "a fragment of a Maven project, which sdks/java/tests builds",
    "text": "a list of commands, or a command's own help",
}
