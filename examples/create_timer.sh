#!/bin/sh
# Creates a timer with curl:  sh examples/create_timer.sh http://127.0.0.1:9000/ 10s
# TOCSIN_URL names the server and TOCSIN_KEY the API key.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: create_timer.sh CALLBACK_URL DELAY" >&2
    exit 2
fi

curl --silent --show-error --fail-with-body --max-time 10 \
    --header 'content-type: application/json' \
    ${TOCSIN_KEY:+--header "authorization: Bearer $TOCSIN_KEY"} \
    --data "{
        \"namespace\": \"default\",
        \"id\": \"order-17-reminder\",
        \"delay\": \"$2\",
        \"callbackUrl\": \"$1\",
        \"payload\": {\"order\": 17},
        \"retryPolicy\": {\"maxAttempts\": 5, \"initialInterval\": \"1s\"}
    }" \
    "${TOCSIN_URL:-http://127.0.0.1:8080}/api/v1/timers/create"
echo
